module http

go 1.19
