/* Loaded before the libraries of a C++ program: std::random_device gives it the same numbers in each run. It hears of
   one thread, since several would draw them in another order each time. */

unsigned _ZNSt13random_device9_M_getvalEv(void *device)
{
    static unsigned number;
    (void)device;
    return number = number * 1664525 + 1013904223;
}

unsigned _ZNSt6thread20hardware_concurrencyEv(void)
{
    return 1;
}
