// How many bits the bytes of one store of a wave take in the best code that has a word for each byte (Huffman's).
#include <luthier/hooks.h>
using namespace luthier;

constexpr u32 BYTES = 256, NODES = 2 * BYTES;

struct Tree { // 4 kB, in the memory of one lane
    u32 weight[NODES];         // of bytes first, then of inner nodes: how often what is below occurs
    u16 left[NODES];           // children of inner nodes; of leaves, bytes in the order of their weights
    u16 right[NODES];
};

// Bytes from `low` to `high` in the order of their weights. The longer part is left to the loop.
LUTHIER_DEPTH(9) __device__ void sort(Tree *tree, i32 low, i32 high) {
    while (low < high) {
        u32 pivot = tree->weight[tree->left[(low + high) / 2]];
        i32 i = low, j = high;
        while (i <= j) {
            while (tree->weight[tree->left[i]] < pivot) ++i;
            while (tree->weight[tree->left[j]] > pivot) --j;
            if (i <= j) {
                u16 other = tree->left[i];
                tree->left[i++] = tree->left[j];
                tree->left[j--] = other;
            }
        }
        if (j - low < high - i) {
            sort(tree, low, j);
            low = i;
        } else {
            sort(tree, i, high);
            high = j;
        }
    }
}

// The longest word below a node. Weights of 1024 bytes at most make no tree that is deeper than 15.
LUTHIER_DEPTH(17) __device__ u32 longest(Tree *tree, u32 node) {
    if (node < BYTES) return 0;
    u32 left = longest(tree, tree->left[node]), right = longest(tree, tree->right[node]);
    return 1 + (left < right ? right : left);
}

// Bits of all words, by joining the two lightest nodes until one is left: inner nodes come into being in the order of
// their weights. Leaves `root` there.
__device__ u32 joined(Tree *tree, u32 leaves, u32 *root) {
    u32 leaf = 0, inner = BYTES, last = BYTES, bits = 0;
    *root = tree->left[0];
    for (u32 joins = 1; joins < leaves; ++joins) {
        u32 two[2];
        for (u32 k = 0; k < 2; ++k) {
            bool is_leaf = leaf < leaves && (inner == last || tree->weight[tree->left[leaf]] <= tree->weight[inner]);
            two[k] = is_leaf ? tree->left[leaf++] : inner++;
        }
        tree->weight[last] = tree->weight[two[0]] + tree->weight[two[1]];
        tree->left[last] = two[0];
        tree->right[last] = two[1];
        bits += tree->weight[last];
        *root = last++;
    }
    return bits;
}

// totals: executions, bytes, bits, and the longest word.
LUTHIER_HOOK(no_fold) void code(lane<u32> a, lane<u32> b, lane<u32> c, lane<u32> d, u32 dwords, u64 *totals) {
    u64 active = active_mask();
    if (!is_first_lane()) return;
    Tree tree;
    for (u32 byte = 0; byte < BYTES; ++byte) tree.weight[byte] = 0;
    for (u64 left = active; left != 0; left &= left - 1) {
        u32 from = count_trailing_zeros(left);
        for (u32 k = 0; k < dwords; ++k) {
            u32 bits = k == 0 ? read_lane(a, from) : k == 1 ? read_lane(b, from) : k == 2 ? read_lane(c, from)
                                                                                      : read_lane(d, from);
            for (u32 shift = 0; shift < 32; shift += 8) ++tree.weight[bits >> shift & 0xff];
        }
    }
    u32 leaves = 0, root = 0;
    for (u32 byte = 0; byte < BYTES; ++byte)
        if (tree.weight[byte] != 0) tree.left[leaves++] = byte;
    sort(&tree, 0, i32(leaves) - 1);
    u32 bits = joined(&tree, leaves, &root);
    atomic_add(&totals[0], 1);
    atomic_add(&totals[1], 4 * dwords * popcount(active));
    atomic_add(&totals[2], bits);
    atomic_max(&totals[3], longest(&tree, root));
}
