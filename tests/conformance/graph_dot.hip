// hipGraphDebugDotPrint: a file in the language of Graphviz, with more in it where flags ask for it.
#include "graphs.h"

#include <fstream>
#include <unistd.h>

struct File {
    std::string path = "/tmp/conformance-" + std::to_string(getpid()) + ".dot";
    ~File() { (void)unlink(path.c_str()); }
    std::string text() const
    {
        std::ifstream stream(path);
        std::stringstream words;
        words << stream.rdbuf();
        return words.str();
    }
};

static size_t times(const std::string &text, const std::string &part)
{
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        count++;
    return count;
}

CASE(dot_arguments)
{
    File file;
    Graph graph;
    GIVES(hipErrorInvalidValue, hipGraphDebugDotPrint(nullptr, file.path.c_str(), 0));
    GIVES(hipErrorInvalidValue, hipGraphDebugDotPrint(graph, nullptr, 0));
    GIVES(hipErrorOperatingSystem, hipGraphDebugDotPrint(graph, "/no/such/folder/graph.dot", 0));
}

CASE(nodes_and_edges)
{
    File file;
    Numbers numbers;
    std::atomic<int> calls{0};
    Graph graph;
    auto fill = fill_node(graph, {}, numbers, 1);
    auto kernel = launch_node(graph, {fill}, add, numbers, 1);
    auto copy = copy_node(graph, {kernel}, numbers, numbers, 16, hipMemcpyDeviceToDevice);
    host_node(graph, {copy}, calls);
    empty_node(graph, {kernel});
    CHECK(hipGraphDebugDotPrint(graph, file.path.c_str(), 0));
    std::string text = file.text();
    REQUIRE(text.rfind("digraph", 0) == 0);
    EQUAL(4u, times(text, " -> "));
    for (const char *each : {"add", "MEMSET", "MEMCPY", "HOST", "EMPTY", "label=", "shape="})
        REQUIRE(text.find(each) != std::string::npos);
    EQUAL(times(text, "{"), times(text, "}"));
    EQUAL(times(text, "["), times(text, "]"));
    EQUAL(0u, times(text, "\"") % 2);
}

CASE(flags_add_parameters)
{
    File file;
    Numbers numbers;
    std::atomic<int> calls{0};
    Event event;
    Graph graph;
    hipGraphNode_t record;
    auto kernel = launch_node(graph, {}, add, numbers, 1);
    fill_node(graph, {kernel}, numbers, 91);
    copy_node(graph, {kernel}, numbers, numbers, 12345 % 256, hipMemcpyDeviceToDevice);
    host_node(graph, {kernel}, calls);
    CHECK(hipGraphAddEventRecordNode(&record, graph, nullptr, 0, event));
    CHECK(hipGraphDebugDotPrint(graph, file.path.c_str(), 0));
    size_t plain = file.text().size();
    for (unsigned flag : {hipGraphDebugDotFlagsVerbose, hipGraphDebugDotFlagsKernelNodeParams, hipGraphDebugDotFlagsMemcpyNodeParams,
                          hipGraphDebugDotFlagsMemsetNodeParams, hipGraphDebugDotFlagsHostNodeParams, hipGraphDebugDotFlagsEventNodeParams,
                          hipGraphDebugDotFlagsKernelNodeAttributes, hipGraphDebugDotFlagsHandles}) {
        CHECK(hipGraphDebugDotPrint(graph, file.path.c_str(), flag));
        REQUIRE(file.text().size() > plain);
    }
    CHECK(hipGraphDebugDotPrint(graph, file.path.c_str(), hipGraphDebugDotFlagsKernelNodeParams));
    REQUIRE(file.text().find("(1,1,1),(64,1,1)") != std::string::npos);
}

CASE(children_are_printed_too)
{
    File file;
    Numbers numbers;
    Graph graph, child;
    hipGraphNode_t node;
    launch_node(child, {}, multiply, numbers, 1);
    CHECK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    CHECK(hipGraphDebugDotPrint(graph, file.path.c_str(), 0));
    std::string text = file.text();
    REQUIRE(text.find("multiply") != std::string::npos);
    EQUAL(2u, times(text, "subgraph"));
}
