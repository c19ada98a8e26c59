// Its precompiled headers are what it is for: the test programs use them.
int main() {}
