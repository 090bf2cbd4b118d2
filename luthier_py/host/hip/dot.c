/* hipGraphDebugDotPrint: a graph in the language of Graphviz, with its children as graphs of their own. */
#include "graph.h"

enum { HANDLES = 1 << 10, VERBOSE = 1 };

static void print_node(FILE *out, const struct node *node, unsigned flags)
{
    const struct node_kind *kind = node->kind;
    fprintf(out, "\"graph_%llu_node_%llu\" [style=\"solid\", shape=\"%s\", label=\"%llu\\n%s", (unsigned long long)node->graph->id,
            (unsigned long long)node->id, kind->shape, (unsigned long long)node->id, kind->label);
    if (flags & (HANDLES | VERBOSE))
        fprintf(out, "\\nnode %p", (const void *)node);
    if (kind->describe)
        kind->describe(out, &node->content, flags);
    if (is_of(node, NODE_GRAPH))
        fprintf(out, "\\ngraph_%llu", (unsigned long long)node->content.child->id);
    fprintf(out, "\"];\n");
}

static void print_edges(FILE *out, const struct node *node)
{
    for (size_t i = 0; i < node->after.count; i++)
        fprintf(out, "\"graph_%llu_node_%llu\" -> \"graph_%llu_node_%llu\";\n", (unsigned long long)node->graph->id,
                (unsigned long long)node->id, (unsigned long long)node->graph->id, (unsigned long long)node->after.at[i]->id);
}

static void print_graph(FILE *out, const struct graph *graph, unsigned flags)
{
    fprintf(out, "subgraph cluster_%llu {\nlabel=\"graph_%llu\";\n", (unsigned long long)graph->id, (unsigned long long)graph->id);
    for (size_t i = 0; i < graph->nodes.count; i++)
        print_node(out, graph->nodes.at[i], flags);
    for (size_t i = 0; i < graph->nodes.count; i++)
        print_edges(out, graph->nodes.at[i]);
    fprintf(out, "}\n");
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (is_of(graph->nodes.at[i], NODE_GRAPH))
            print_graph(out, graph->nodes.at[i]->content.child, flags);
}

hipError_t hipGraphDebugDotPrint(struct graph *graph, const char *path, unsigned flags)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return hipErrorOperatingSystem;
    fprintf(out, "digraph dot {\n");
    print_graph(out, graph, flags);
    fprintf(out, "}\n");
    return fclose(out) ? hipErrorOperatingSystem : hipSuccess;
}
