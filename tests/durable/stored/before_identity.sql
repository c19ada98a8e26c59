CREATE TABLE durable_answers (
    id bytea NOT NULL,
    asker bytea NOT NULL,
    at bigint NOT NULL,
    failed integer NOT NULL,
    error_type text NOT NULL,
    value bytea NOT NULL
);
CREATE TABLE durable_classes (
    kind text NOT NULL COLLATE pg_catalog."C",
    schema integer NOT NULL,
    fingerprint bigint NOT NULL,
    shape text NOT NULL
);
CREATE TABLE durable_dead (
    number bigint NOT NULL,
    id bytea NOT NULL,
    named integer NOT NULL,
    origin integer NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    asker bytea NOT NULL,
    method text NOT NULL,
    signature bigint NOT NULL,
    arguments bytea NOT NULL,
    failures integer NOT NULL,
    error_type text NOT NULL,
    error text NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE durable_events (
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    value bytea NOT NULL
);
CREATE TABLE durable_inbox (
    number bigint NOT NULL,
    id bytea NOT NULL,
    named integer NOT NULL,
    origin integer NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    asker bytea NOT NULL,
    method text NOT NULL,
    signature bigint NOT NULL,
    arguments bytea NOT NULL,
    failures integer NOT NULL
);
CREATE TABLE durable_meta (
    name text NOT NULL COLLATE pg_catalog."C",
    value bigint NOT NULL
);
CREATE TABLE durable_reminders (
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    due bigint NOT NULL,
    rule text NOT NULL,
    method text NOT NULL,
    signature bigint NOT NULL,
    arguments bytea NOT NULL
);
CREATE TABLE durable_state (
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    schema integer NOT NULL,
    fingerprint bigint NOT NULL,
    number bigint NOT NULL,
    value bytea NOT NULL
);
INSERT INTO durable_answers VALUES ('\x1b30fdd42fd3532ef029b0f299e915f3', '\x00000000000000000000000000000000', 4102444800, 0, '', '\x6e00000000000000');
INSERT INTO durable_classes VALUES ('account', 1, -1966344205865353029, '{cents:i8,painted:enum u1,state:({}|{}),lines:[text]}');
INSERT INTO durable_classes VALUES ('counter', 1, -8929467759855775613, '{sum:i8}');
INSERT INTO durable_classes VALUES ('counter event', 1, -3508697702199104095, '{by:i4}');
INSERT INTO durable_classes VALUES ('holder', 1, 7420024550730701787, '{held:i4}');
INSERT INTO durable_dead VALUES (5, '\xbcdbb968762c886a1466252671eab394', 0, 0, 'account', 'ada', '\x00000000000000000000000000000000', 'refuse', 567769145981429338, '\x', 1, 'std::runtime_error', 'poison', 1795743884);
INSERT INTO durable_events VALUES ('counter', 'c', 1, '\x01000000');
INSERT INTO durable_events VALUES ('counter', 'c', 2, '\x02000000');
INSERT INTO durable_events VALUES ('counter', 'c', 3, '\x03000000');
INSERT INTO durable_events VALUES ('counter', 'c', 4, '\x04000000');
INSERT INTO durable_events VALUES ('counter', 'c', 5, '\x05000000');
INSERT INTO durable_events VALUES ('counter', 'c', 6, '\x06000000');
INSERT INTO durable_inbox VALUES (12, '\x13000abbc2dcf86b9760f5af9fea0717', 1, 0, 'holder', 'h', '\x00000000000000000000000000000000', 'hold', -8692469124653547605, '\x05000000', 0);
INSERT INTO durable_inbox VALUES (13, '\x5f9d1ac50dbdd1c4aa8ccc9ff497b22b', 0, 0, 'holder', 'h', '\x00000000000000000000000000000000', 'hold', -8692469124653547605, '\x01000000', 0);
INSERT INTO durable_meta VALUES ('version', 1);
INSERT INTO durable_meta VALUES ('owner', 2694233691447283824);
INSERT INTO durable_meta VALUES ('last_batch', 15);
INSERT INTO durable_meta VALUES ('last_number', 13);
INSERT INTO durable_reminders VALUES ('account', 'ada', 'far', 3153600000000, '', 'paint', 3982281405335016663, '\x02');
INSERT INTO durable_reminders VALUES ('account', 'ada', 'often', 4102444800000, 'every 86400000', 'deposit', -723192758581302317, '\x0100000000000000');
INSERT INTO durable_state VALUES ('account', 'ada', 1, -1966344205865353029, 0, '\x6e0000000000000002010000000000');
INSERT INTO durable_state VALUES ('counter', 'c', 1, -8929467759855775613, 4, '\x0a00000000000000');
ALTER TABLE ONLY durable_answers
    ADD CONSTRAINT durable_answers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY durable_classes
    ADD CONSTRAINT durable_classes_pkey PRIMARY KEY (kind, schema);
ALTER TABLE ONLY durable_dead
    ADD CONSTRAINT durable_dead_pkey PRIMARY KEY (number);
ALTER TABLE ONLY durable_events
    ADD CONSTRAINT durable_events_pkey PRIMARY KEY (kind, key, number);
ALTER TABLE ONLY durable_inbox
    ADD CONSTRAINT durable_inbox_pkey PRIMARY KEY (number);
ALTER TABLE ONLY durable_meta
    ADD CONSTRAINT durable_meta_pkey PRIMARY KEY (name);
ALTER TABLE ONLY durable_reminders
    ADD CONSTRAINT durable_reminders_pkey PRIMARY KEY (kind, key, name);
ALTER TABLE ONLY durable_state
    ADD CONSTRAINT durable_state_pkey PRIMARY KEY (kind, key);
CREATE INDEX durable_answers_asker ON durable_answers USING btree (asker) WHERE (asker <> '\x00000000000000000000000000000000'::bytea);
CREATE INDEX durable_answers_at ON durable_answers USING btree (at) WHERE (asker = '\x00000000000000000000000000000000'::bytea);
CREATE INDEX durable_inbox_id ON durable_inbox USING btree (id) WHERE (named = 1);
CREATE INDEX durable_reminders_due ON durable_reminders USING btree (due);
