// This program exists for its precompiled headers, which the test programs use.
int main() {}
