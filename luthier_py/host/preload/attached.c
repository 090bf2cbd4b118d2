/* A tool that the program brings itself: put before the runtime that is there, and taken away again. */
#include "preloaded.h"

#include <stdlib.h>

/* 0, or 1: there is a tool already, 2: no runtime, 3: it did not start. */
API int luthier_tool_attach(const char *tool, const char *options);
API void luthier_tool_detach(void);
API char *luthier_tool_verdict(void); /* as JSON, to be freed; NULL when the worker is gone */
API void luthier_tool_free(char *text);

int luthier_tool_attach(const char *tool, const char *options)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (tool_runs())
        return 1;
    pthread_mutex_lock(&lock);
    bool there = redirect();
    pthread_mutex_unlock(&lock);
    return !there ? 2 : !tool_exchange(tool, options) ? 1 : tool_on() ? 0 : 3;
}

void luthier_tool_detach(void)
{
    tool_end();
    graphs_drop();
    copies_drop();
}

char *luthier_tool_verdict(void) { return tool_verdict(); }

void luthier_tool_free(char *text) { free(text); }
