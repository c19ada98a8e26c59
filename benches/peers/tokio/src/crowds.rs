//! Many actors at once: big and chameneos.

use crate::measure::{ns_per, Outcome};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

// ---- big: each actor pings others ---------------------------------------------------------------------

enum CrowdMessage {
    Start,
    Ping(UnboundedSender<CrowdMessage>),
    Pong,
    Report,
}

struct Member {
    index: u64,
    pings: u64,
    mailbox: UnboundedReceiver<CrowdMessage>,
    crowd: Arc<Vec<UnboundedSender<CrowdMessage>>>,
    done: UnboundedSender<u64>,
}

impl Member {
    async fn run(mut self) {
        let me = self.crowd[self.index as usize].clone();
        let mut random = self.index.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        let mut left = self.pings;
        let mut answered = 0;
        while let Some(message) = self.mailbox.recv().await {
            match message {
                CrowdMessage::Ping(from) => {
                    answered += 1;
                    let _ = from.send(CrowdMessage::Pong);
                    continue;
                }
                CrowdMessage::Report => {
                    let _ = self.done.send(answered);
                    continue;
                }
                CrowdMessage::Pong => {
                    left -= 1;
                    if left == 0 {
                        let _ = self.done.send(0);
                        continue;
                    }
                }
                CrowdMessage::Start => {}
            }
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let somebody = ((random >> 32) * self.crowd.len() as u64) >> 32;
            let _ = self.crowd[somebody as usize].send(CrowdMessage::Ping(me.clone()));
        }
    }
}

pub async fn big(pings: u64) -> Outcome {
    let (crowd, mailboxes): (Vec<_>, Vec<_>) = (0..120).map(|_| unbounded_channel()).unzip();
    let crowd = Arc::new(crowd);
    let (done, mut reports) = unbounded_channel();
    for (index, mailbox) in (0..).zip(mailboxes) {
        let member = Member { index, pings, mailbox, crowd: crowd.clone(), done: done.clone() };
        tokio::spawn(member.run());
    }
    let start = Instant::now();
    for member in crowd.iter() {
        let _ = member.send(CrowdMessage::Start);
    }
    sum(&mut reports, crowd.len()).await;
    let value = ns_per(start, pings * crowd.len() as u64);
    for member in crowd.iter() {
        let _ = member.send(CrowdMessage::Report);
    }
    Outcome::new(value, sum(&mut reports, crowd.len()).await)
}

async fn sum(reports: &mut UnboundedReceiver<u64>, count: usize) -> u64 {
    let mut total = 0;
    for _ in 0..count {
        total += reports.recv().await.expect("a report");
    }
    total
}

// ---- chameneos: creatures meet in pairs and take a colour from both ----------------------------------------

enum CreatureMessage {
    Meet(u8, UnboundedSender<CreatureMessage>),
    Change(u8),
    Stop,
}

/// A creature's colour and address, sent to the mall.
struct Ask(u8, UnboundedSender<CreatureMessage>);

/// Of three colours: the same if both agree, else the one neither has.
fn complement(a: u8, b: u8) -> u8 {
    if a == b {
        a
    } else {
        3 - a - b
    }
}

async fn mall(mut mailbox: UnboundedReceiver<Ask>, mut meetings: u64) {
    let mut waiting: Option<UnboundedSender<CreatureMessage>> = None;
    while let Some(Ask(colour, asker)) = mailbox.recv().await {
        if meetings == 0 {
            let _ = asker.send(CreatureMessage::Stop);
        } else if let Some(first) = waiting.take() {
            meetings -= 1;
            let _ = first.send(CreatureMessage::Meet(colour, asker));
        } else {
            waiting = Some(asker);
        }
    }
}

async fn creature(mut colour: u8, place: UnboundedSender<Ask>, done: UnboundedSender<u64>) {
    let (me, mut mailbox) = unbounded_channel();
    let mut met = 0;
    let _ = place.send(Ask(colour, me.clone()));
    while let Some(message) = mailbox.recv().await {
        match message {
            CreatureMessage::Meet(other, partner) => {
                colour = complement(colour, other);
                let _ = partner.send(CreatureMessage::Change(colour));
            }
            CreatureMessage::Change(new) => colour = new,
            CreatureMessage::Stop => break,
        }
        met += 1;
        let _ = place.send(Ask(colour, me.clone()));
    }
    let _ = done.send(met);
}

pub async fn chameneos(meetings: u64) -> Outcome {
    let (place, asks) = unbounded_channel();
    let (done, mut reports) = unbounded_channel();
    tokio::spawn(mall(asks, meetings));
    let start = Instant::now();
    for i in 0..100 {
        tokio::spawn(creature(i % 3, place.clone(), done.clone()));
    }
    let mut met = Vec::new();
    for _ in 0..100 {
        met.push(reports.recv().await.expect("a report"));
    }
    Outcome::of_meetings(ns_per(start, meetings), &met)
}
