module actors

go 1.19
