// Graphs as data: nodes, edges, clones, and what is asked of them.
#include "graphs.h"

#include <algorithm>

CASE(create_refuses_null_and_flags)
{
    hipGraph_t graph;
    GIVES(hipErrorInvalidValue, hipGraphCreate(nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphCreate(&graph, 1));
}

CASE(destroy_of_null_and_twice)
{
    hipGraph_t graph;
    GIVES(hipErrorInvalidValue, hipGraphDestroy(nullptr));
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphDestroy(graph));
    GIVES(hipErrorIllegalState, hipGraphDestroy(graph));
    GIVES(hipErrorIllegalState, hipGraphDestroy(wild<hipGraph_t>()));
}

CASE(destroyed_graphs_are_refused)
{
    hipGraph_t graph, clone;
    hipGraphNode_t node;
    hipGraphExec_t executable;
    size_t count = 0;
    CHECK(hipGraphCreate(&graph, 0));
    CHECK(hipGraphDestroy(graph));
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphGetNodes(graph, nullptr, &count));
    GIVES(hipErrorInvalidValue, hipGraphClone(&clone, graph));
    GIVES(hipErrorInvalidValue, hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
}

CASE(nodes_go_with_their_graph)
{
    hipGraph_t graph;
    hipGraphNodeType type;
    CHECK(hipGraphCreate(&graph, 0));
    hipGraphNode_t node = empty_node(graph);
    CHECK(hipGraphNodeGetType(node, &type));
    CHECK(hipGraphDestroy(graph));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetType(node, &type));
    GIVES(hipErrorInvalidValue, hipGraphDestroyNode(node));
}

CASE(empty_nodes_arguments)
{
    Graph graph, other;
    hipGraphNode_t node, before = empty_node(graph), foreign = empty_node(other), twice[] = {before, before};
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(nullptr, graph, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, nullptr, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, &foreign, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, twice, 2));
    node = wild<hipGraphNode_t>();
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(&before, graph, &node, 1));
}

CASE(a_refused_node_is_not_in_the_graph)
{
    Graph graph, other;
    hipGraphNode_t node, foreign = empty_node(other);
    GIVES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, &foreign, 1));
    EQUAL(0u, graph.size());
}

CASE(types_of_nodes)
{
    Graph graph, child;
    Numbers numbers;
    Event event;
    std::atomic<int> calls{0};
    hipGraphNode_t node;
    hipGraphNodeType type;
    auto is = [&](hipGraphNode_t node, hipGraphNodeType wanted) {
        CHECK(hipGraphNodeGetType(node, &type));
        EQUAL(int(wanted), int(type));
    };
    is(launch_node(graph, {}, add, numbers, 1), hipGraphNodeTypeKernel);
    is(copy_node(graph, {}, numbers, numbers), hipGraphNodeTypeMemcpy);
    is(fill_node(graph, {}, numbers, 1), hipGraphNodeTypeMemset);
    is(host_node(graph, {}, calls), hipGraphNodeTypeHost);
    is(empty_node(graph), hipGraphNodeTypeEmpty);
    CHECK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    is(node, hipGraphNodeTypeGraph);
    CHECK(hipGraphAddEventWaitNode(&node, graph, nullptr, 0, event));
    is(node, hipGraphNodeTypeWaitEvent);
    CHECK(hipGraphAddEventRecordNode(&node, graph, nullptr, 0, event));
    is(node, hipGraphNodeTypeEventRecord);
    GIVES(hipErrorInvalidValue, hipGraphNodeGetType(nullptr, &type));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetType(node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetType(wild<hipGraphNode_t>(), &type));
}

// top -> left, right -> bottom
struct Diamond {
    Graph graph;
    hipGraphNode_t top = empty_node(graph), left = empty_node(graph, {top}), right = empty_node(graph, {top}),
                   bottom = empty_node(graph, {left, right});
};

CASE(nodes_come_in_an_order_that_edges_allow)
{
    Graph graph;
    hipGraphNode_t last = empty_node(graph), first = empty_node(graph), nodes[2];
    CHECK(hipGraphAddDependencies(graph, &first, &last, 1));
    size_t count = 2;
    CHECK(hipGraphGetNodes(graph, nodes, &count));
    EQUAL(2u, count);
    REQUIRE(nodes[0] == first && nodes[1] == last);
}

CASE(get_nodes_fills_what_there_is_room_for)
{
    Diamond diamond;
    hipGraphNode_t nodes[6];
    size_t count = 2;
    CHECK(hipGraphGetNodes(diamond.graph, nodes, &count));
    EQUAL(2u, count);
    REQUIRE(nodes[0] == diamond.top);
    std::fill_n(nodes, 6, wild<hipGraphNode_t>());
    count = 6;
    CHECK(hipGraphGetNodes(diamond.graph, nodes, &count));
    EQUAL(4u, count);
    REQUIRE(nodes[3] == diamond.bottom && nodes[4] == nullptr && nodes[5] == nullptr);
    GIVES(hipErrorInvalidValue, hipGraphGetNodes(nullptr, nodes, &count));
    GIVES(hipErrorInvalidValue, hipGraphGetNodes(diamond.graph, nodes, nullptr));
}

CASE(root_nodes)
{
    Diamond diamond;
    hipGraphNode_t alone = empty_node(diamond.graph), roots[3];
    size_t count = 0;
    CHECK(hipGraphGetRootNodes(diamond.graph, nullptr, &count));
    EQUAL(2u, count);
    count = 3;
    CHECK(hipGraphGetRootNodes(diamond.graph, roots, &count));
    EQUAL(2u, count);
    REQUIRE(roots[0] == diamond.top && roots[1] == alone && roots[2] == nullptr);
    GIVES(hipErrorInvalidValue, hipGraphGetRootNodes(nullptr, roots, &count));
    GIVES(hipErrorInvalidValue, hipGraphGetRootNodes(diamond.graph, roots, nullptr));
}

CASE(edges)
{
    Diamond diamond;
    hipGraphNode_t from[5], to[5];
    size_t count = 0;
    CHECK(hipGraphGetEdges(diamond.graph, nullptr, nullptr, &count));
    EQUAL(4u, count);
    count = 5;
    CHECK(hipGraphGetEdges(diamond.graph, from, to, &count));
    EQUAL(4u, count);
    for (int i = 0; i < 4; i++)
        REQUIRE((from[i] == diamond.top && (to[i] == diamond.left || to[i] == diamond.right)) ||
                (to[i] == diamond.bottom && (from[i] == diamond.left || from[i] == diamond.right)));
    REQUIRE(from[4] == nullptr && to[4] == nullptr);
    count = 1;
    CHECK(hipGraphGetEdges(diamond.graph, from, to, &count));
    EQUAL(1u, count);
    GIVES(hipErrorInvalidValue, hipGraphGetEdges(nullptr, from, to, &count));
    GIVES(hipErrorInvalidValue, hipGraphGetEdges(diamond.graph, nullptr, to, &count));
    GIVES(hipErrorInvalidValue, hipGraphGetEdges(diamond.graph, from, nullptr, &count));
    GIVES(hipErrorInvalidValue, hipGraphGetEdges(diamond.graph, from, to, nullptr));
}

CASE(dependencies_and_dependents)
{
    Diamond diamond;
    hipGraphNode_t nodes[3];
    size_t count = 0;
    CHECK(hipGraphNodeGetDependencies(diamond.bottom, nullptr, &count));
    EQUAL(2u, count);
    count = 3;
    CHECK(hipGraphNodeGetDependencies(diamond.bottom, nodes, &count));
    EQUAL(2u, count);
    REQUIRE(nodes[0] == diamond.left && nodes[1] == diamond.right && nodes[2] == nullptr);
    CHECK(hipGraphNodeGetDependentNodes(diamond.top, nullptr, &count));
    EQUAL(2u, count);
    count = 3;
    CHECK(hipGraphNodeGetDependentNodes(diamond.top, nodes, &count));
    EQUAL(2u, count);
    REQUIRE(nodes[0] == diamond.left && nodes[1] == diamond.right && nodes[2] == nullptr);
    GIVES(hipErrorInvalidValue, hipGraphNodeGetDependencies(nullptr, nodes, &count));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetDependencies(diamond.top, nodes, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetDependentNodes(nullptr, nodes, &count));
    GIVES(hipErrorInvalidValue, hipGraphNodeGetDependentNodes(diamond.top, nodes, nullptr));
}

CASE(add_dependencies_arguments)
{
    Graph graph, other;
    hipGraphNode_t a = empty_node(graph), b = empty_node(graph), foreign = empty_node(other), none = nullptr;
    CHECK(hipGraphAddDependencies(graph, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(nullptr, &a, &b, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, nullptr, &b, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, nullptr, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, &a, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &none, &a, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, &none, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &foreign, &a, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, &foreign, 1));
    CHECK(hipGraphAddDependencies(graph, &a, &b, 1));
    GIVES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, &b, 1)); // the same again
}

CASE(remove_dependencies)
{
    Diamond diamond;
    Graph other;
    hipGraphNode_t foreign = empty_node(other);
    size_t count = 0;
    CHECK(hipGraphRemoveDependencies(diamond.graph, nullptr, nullptr, 0));
    CHECK(hipGraphRemoveDependencies(diamond.graph, &diamond.top, &diamond.left, 1));
    CHECK(hipGraphGetEdges(diamond.graph, nullptr, nullptr, &count));
    EQUAL(3u, count);
    CHECK(hipGraphNodeGetDependencies(diamond.left, nullptr, &count));
    EQUAL(0u, count);
    GIVES(hipErrorInvalidValue, hipGraphRemoveDependencies(diamond.graph, &diamond.top, &diamond.left, 1));
    GIVES(hipErrorInvalidValue, hipGraphRemoveDependencies(nullptr, &diamond.top, &diamond.right, 1));
    GIVES(hipErrorInvalidValue, hipGraphRemoveDependencies(diamond.graph, nullptr, &diamond.right, 1));
    GIVES(hipErrorInvalidValue, hipGraphRemoveDependencies(diamond.graph, &diamond.top, nullptr, 1));
    GIVES(hipErrorInvalidValue, hipGraphRemoveDependencies(diamond.graph, &foreign, &diamond.right, 1));
}

CASE(destroy_node_takes_its_edges)
{
    Diamond diamond;
    size_t count = 0;
    CHECK(hipGraphDestroyNode(diamond.left));
    EQUAL(3u, diamond.graph.size());
    CHECK(hipGraphGetEdges(diamond.graph, nullptr, nullptr, &count));
    EQUAL(2u, count);
    GIVES(hipErrorInvalidValue, hipGraphDestroyNode(diamond.left));
    GIVES(hipErrorInvalidValue, hipGraphDestroyNode(nullptr));
}

CASE(circles_are_found)
{
    Graph graph;
    hipGraphNode_t a = empty_node(graph), b = empty_node(graph, {a});
    hipGraphExec_t executable;
    size_t count = 0;
    CHECK(hipGraphAddDependencies(graph, &b, &a, 1));
    GIVES(hipErrorInvalidValue, hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipGraphGetNodes(graph, nullptr, &count));
    CHECK(hipGraphRemoveDependencies(graph, &b, &a, 1));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    CHECK(hipGraphExecDestroy(executable));
}

CASE(clones_are_of_the_moment)
{
    Stream stream;
    Numbers numbers(1);
    Graph graph;
    hipGraphNode_t node = launch_node(graph, {}, add, numbers, 2), in_clone;
    hipGraph_t made;
    CHECK(hipGraphClone(&made, graph));
    Graph clone(made);
    launch_node(graph, {node}, add, numbers, 100); // not in the clone
    Launch other(add, numbers, 5);
    CHECK(hipGraphKernelNodeSetParams(node, &other.params)); // nor this
    EQUAL(1u, clone.size());
    CHECK(hipGraphNodeFindInClone(&in_clone, node, clone));
    REQUIRE(in_clone != node);
    Executable(clone).run(stream);
    REQUIRE(numbers == 3);
}

CASE(clones_have_the_edges)
{
    Diamond diamond;
    hipGraph_t made;
    CHECK(hipGraphClone(&made, diamond.graph));
    Graph clone(made);
    hipGraphNode_t left, bottom, nodes[2];
    size_t count = 2;
    CHECK(hipGraphNodeFindInClone(&left, diamond.left, clone));
    CHECK(hipGraphNodeFindInClone(&bottom, diamond.bottom, clone));
    CHECK(hipGraphNodeGetDependencies(bottom, nodes, &count));
    EQUAL(2u, count);
    REQUIRE(nodes[0] == left);
}

CASE(clones_of_clones)
{
    Graph graph;
    hipGraphNode_t node = empty_node(graph), first_node, second_node;
    hipGraph_t made;
    CHECK(hipGraphClone(&made, graph));
    Graph first(made);
    CHECK(hipGraphClone(&made, first));
    Graph second(made);
    CHECK(hipGraphNodeFindInClone(&first_node, node, first));
    CHECK(hipGraphNodeFindInClone(&second_node, first_node, second));
    GIVES(hipErrorInvalidValue, hipGraphNodeFindInClone(&second_node, node, second)); // it is a clone of the clone
}

CASE(clone_arguments)
{
    Graph graph, other;
    hipGraph_t made;
    hipGraphNode_t node = empty_node(graph), found;
    GIVES(hipErrorInvalidValue, hipGraphClone(nullptr, graph));
    GIVES(hipErrorInvalidValue, hipGraphClone(&made, nullptr));
    CHECK(hipGraphClone(&made, graph));
    Graph clone(made);
    GIVES(hipErrorInvalidValue, hipGraphNodeFindInClone(nullptr, node, clone));
    GIVES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, nullptr, clone));
    GIVES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, node, nullptr));
    GIVES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, node, graph)); // no clone
    GIVES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, node, other));
    GIVES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, empty_node(graph), clone)); // came later
}

CASE(clones_outlive_the_original)
{
    Stream stream;
    Numbers numbers(1);
    hipGraph_t original, made;
    CHECK(hipGraphCreate(&original, 0));
    launch_node(original, {}, add, numbers, 2);
    CHECK(hipGraphClone(&made, original));
    CHECK(hipGraphDestroy(original));
    Graph clone(made);
    Executable(clone).run(stream);
    REQUIRE(numbers == 3);
}
