// What LLVM's own tables say of every AMDGPU instruction: one line each, read from MCInstrInfo of libLLVM.
//
// In: names of instructions, one a line, on standard input. Out, for each that LLVM has, tab-separated: name; size in
// bytes; flags of MCInstrDesc that are set; TSFlags in hexadecimal; implicit uses; implicit definitions; operands.
// An operand is "d" (defined) or "u" (used), then the register class as files and bits ("VS32"; "-" for none), then
// "=N" where it is tied to operand N, and "b" for a branch target.
//
// c++ -std=c++17 instruction_descriptions.cpp $(llvm-config-22 --cxxflags --ldflags --libs) -o instruction_descriptions

#include "llvm/MC/MCInstrDesc.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"

#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();

using namespace llvm;

static const struct {
  MCID::Flag flag;
  const char *name;
} Flags[] = {
    {MCID::MayLoad, "mayLoad"},         {MCID::MayStore, "mayStore"},
    {MCID::Branch, "isBranch"},         {MCID::IndirectBranch, "isIndirectBranch"},
    {MCID::Call, "isCall"},             {MCID::Return, "isReturn"},
    {MCID::Barrier, "isBarrier"},       {MCID::Terminator, "isTerminator"},
    {MCID::Compare, "isCompare"},       {MCID::UnmodeledSideEffects, "hasSideEffects"},
    {MCID::Convergent, "isConvergent"}, {MCID::MayRaiseFPException, "mayRaiseFPException"},
};

// The register files that a class holds, and its width: "VA64".
static const std::string &classText(const MCRegisterInfo &registers, int number) {
  static std::map<int, std::string> known;
  if (std::string &text = known[number]; !text.empty())
    return text;
  const MCRegisterClass &kind = registers.getRegClass(number);
  std::set<char> files;
  for (unsigned i = 0; i < kind.getNumRegs(); ++i) {
    StringRef name = registers.getName(kind.getRegister(i));
    files.insert(name.starts_with("VGPR") ? 'V' : name.starts_with("AGPR") ? 'A' : 'S');
  }
  return known[number] = std::string(files.begin(), files.end()) + std::to_string(kind.getSizeInBits());
}

template <typename Registers>
static void printNames(const MCRegisterInfo &registers, const Registers &list) {
  std::cout << '\t';
  bool first = true;
  for (MCPhysReg reg : list) {
    std::cout << (first ? "" : " ") << registers.getName(reg);
    first = false;
  }
}

static void printOne(const MCInstrInfo &instructions, const MCRegisterInfo &registers, unsigned mode, unsigned opcode) {
  const MCInstrDesc &desc = instructions.get(opcode);
  std::cout << instructions.getName(opcode).str() << '\t' << unsigned(desc.Size) << '\t';
  bool first = true;
  for (const auto &row : Flags)
    if (desc.Flags >> row.flag & 1) {
      std::cout << (first ? "" : " ") << row.name;
      first = false;
    }
  std::cout << '\t' << std::hex << desc.TSFlags << std::dec;
  printNames(registers, desc.implicit_uses());
  printNames(registers, desc.implicit_defs());
  std::cout << '\t';
  for (unsigned i = 0; i < desc.NumOperands; ++i) {
    const MCOperandInfo &operand = desc.operands()[i];
    int kind = instructions.getOpRegClassID(operand, mode);
    int tied = desc.getOperandConstraint(i, MCOI::TIED_TO);
    std::cout << (i ? " " : "") << (i < desc.NumDefs ? 'd' : 'u')
              << (kind < 0 ? "-" : classText(registers, kind));
    if (tied >= 0)
      std::cout << '=' << tied;
    if (operand.OperandType == MCOI::OPERAND_PCREL)
      std::cout << 'b';
  }
  std::cout << '\n';
}

int main() {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  std::string error;
  Triple triple("amdgcn-amd-amdhsa");
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    std::cerr << error << '\n';
    return 1;
  }
  std::unique_ptr<MCInstrInfo> instructions(target->createMCInstrInfo());
  std::unique_ptr<MCRegisterInfo> registers(target->createMCRegInfo(triple));
  std::unique_ptr<MCSubtargetInfo> subtarget(target->createMCSubtargetInfo(triple, "gfx90a", ""));
  unsigned mode = subtarget->getHwMode(MCSubtargetInfo::HwMode_RegInfo);
  std::set<std::string> wanted;
  for (std::string line; std::getline(std::cin, line);)
    wanted.insert(line);
  for (unsigned opcode = 0; opcode < instructions->getNumOpcodes(); ++opcode)
    if (wanted.count(instructions->getName(opcode).str()))
      printOne(*instructions, *registers, mode, opcode);
}
