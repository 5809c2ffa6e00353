//! What makes a form well-formed, checked after every pass in debug builds and tests.
//!
//! 1. Every value that is used is a leaf, or is defined earlier in the same region or in a region around it.
//! 2. Instructions and regions are reached once.
//! 3. Results, arguments and what terminators hand on agree in number and type.
//! 4. `break` and `continue` stand in a loop, and nothing but the arms of an `if` around them; grid barriers stand at the top level.
//! 5. A region whose last `if` has no arm that yields ends in `unreachable`.
//! 6. Operands have the types that the op's row asks for.

use super::{Def, InstId, InstKind, Op, RegionId, Ssa, Terminator, Value};
use vyre_spec::{OpInfo, Operand, Scalar, ValueType};

impl Ssa {
    /// The first rule that is broken, in words; a form that a pass made must keep all of them.
    pub fn verify(&self) -> Result<(), String> {
        let mut verifier = Verifier {
            ssa: self,
            defined: vec![false; self.values.len()],
            insts: vec![false; self.insts.len()],
            regions: vec![false; self.regions.len()],
            loops: Vec::new(),
        };
        for (n, info) in self.values.iter().enumerate() {
            verifier.defined[n] = matches!(info.def, Def::Leaf(_));
        }
        verifier.region(self.root, &[], true)?;
        match self.region(self.root).end {
            Terminator::Break(_) | Terminator::Continue(_) => Err("the program ends in a loop".into()),
            Terminator::Yield(_) | Terminator::Return | Terminator::Trap(_) | Terminator::Unreachable => Ok(()),
        }
    }
}

struct Verifier<'a> {
    ssa: &'a Ssa,
    /// By value: whether it can be used here.
    defined: Vec<bool>,
    insts: Vec<bool>,
    regions: Vec<bool>,
    /// The types of what each loop around carries.
    loops: Vec<Vec<ValueType>>,
}

impl Verifier<'_> {
    fn ty(&self, value: Value) -> ValueType {
        self.ssa.value(value).ty
    }

    fn types(&self, values: &[Value]) -> Vec<ValueType> {
        values.iter().map(|value| self.ty(*value)).collect()
    }

    /// A region that yields values of these types.
    fn region(&mut self, id: RegionId, yields: &[ValueType], top: bool) -> Result<(), String> {
        let region = self.ssa.region(id);
        if std::mem::replace(&mut self.regions[id.index()], true) {
            return Err(format!("region {} is reached twice", id.0));
        }
        let mut mine: Vec<Value> = Vec::new();
        for (n, arg) in region.args.iter().enumerate() {
            if self.ssa.value(*arg).def != Def::Argument(id, n as u32) {
                return Err(format!("%{} is not argument {n} of region {}", arg.0, id.0));
            }
            mine.push(*arg);
            self.defined[arg.index()] = true;
        }
        let mut ended = false;
        for inst in &region.insts {
            if ended {
                return Err(format!("instruction {} stands behind the end of its region", inst.0));
            }
            ended = self.inst(*inst, top)?;
            for (n, result) in self.ssa.inst(*inst).results.iter().enumerate() {
                if self.ssa.value(*result).def != Def::Result(*inst, n as u32) {
                    return Err(format!("%{} is not result {n} of instruction {}", result.0, inst.0));
                }
                mine.push(*result);
                self.defined[result.index()] = true;
            }
        }
        for value in region.end.values() {
            self.used(*value)?;
        }
        let handed = self.types(region.end.values());
        let innermost = self.loops.last();
        let fits = match &region.end {
            Terminator::Yield(_) => !ended && handed == yields,
            Terminator::Break(_) | Terminator::Continue(_) => !ended && innermost == Some(&handed),
            Terminator::Return | Terminator::Trap(_) => !ended,
            Terminator::Unreachable => ended,
        };
        if !fits {
            return Err(format!("region {} ends in {:?}, which does not fit", id.0, region.end));
        }
        for value in mine {
            self.defined[value.index()] = false;
        }
        Ok(())
    }

    fn used(&self, value: Value) -> Result<(), String> {
        if self.defined[value.index()] { Ok(()) } else { Err(format!("%{} is used where it is not defined", value.0)) }
    }

    fn expect(&self, value: Value, ty: Scalar, what: &str) -> Result<(), String> {
        let found = self.ty(value);
        if found == ValueType::Scalar(ty) { Ok(()) } else { Err(format!("{what} %{} is {found}, not {ty}", value.0)) }
    }

    /// Whether nothing can come behind the instruction.
    fn inst(&mut self, id: InstId, top: bool) -> Result<bool, String> {
        let inst = self.ssa.inst(id);
        if std::mem::replace(&mut self.insts[id.index()], true) {
            return Err(format!("instruction {} is reached twice", id.0));
        }
        let mut unused = Ok(());
        inst.kind.for_each_operand(&mut |operand| {
            if unused.is_ok() {
                unused = self.used(operand);
            }
        });
        unused?;
        let results = self.types(&inst.results);
        let one = |ty: ValueType| if results == [ty] { Ok(()) } else { Err(format!("instruction {} does not give {ty}", id.0)) };
        match &inst.kind {
            InstKind::Op(op) => one(self.op_type(op)?)?,
            InstKind::Load { buffer, index, .. } => {
                self.expect(*index, Scalar::U32, "the index")?;
                one(self.ssa.kernel.buffer(*buffer).value)?;
            }
            InstKind::Store { buffer, index, value, .. } => {
                self.expect(*index, Scalar::U32, "the index")?;
                if self.ty(*value) != self.ssa.kernel.buffer(*buffer).value || !results.is_empty() {
                    return Err(format!("the store {} does not fit its buffer", id.0));
                }
            }
            InstKind::Atomic { op, buffer, index, operands, .. } => {
                self.expect(*index, Scalar::U32, "the index")?;
                let Some(ty) = self.ssa.kernel.buffer(*buffer).value.scalar() else { return Err("an atomic on a vector".into()) };
                self.row(op.info(), ty, operands)?;
                self.operation(id, &results, op.info(), ty)?;
            }
            InstKind::Subgroup { op, ty, operands } => {
                self.row(op.info(), *ty, operands)?;
                self.operation(id, &results, op.info(), *ty)?;
            }
            InstKind::If { cond, then, otherwise } => {
                self.expect(*cond, Scalar::Bool, "the condition")?;
                self.region(*then, &results, false)?;
                self.region(*otherwise, &results, false)?;
                return Ok([*then, *otherwise].iter().all(|region| !self.ssa.region(*region).end.is_yield()));
            }
            InstKind::Loop { from, to, inits, body } => {
                self.expect(*from, Scalar::U32, "the bound")?;
                self.expect(*to, Scalar::U32, "the bound")?;
                let args = self.types(&self.ssa.region(*body).args);
                let fits = self.types(inits) == results
                    && args
                        .split_first()
                        .is_some_and(|(counter, carried)| *counter == ValueType::Scalar(Scalar::U32) && *carried == results[..]);
                if !fits {
                    return Err(format!("the loop {} does not carry what it is given", id.0));
                }
                self.loops.push(results.clone());
                self.region(*body, &results, false)?;
                self.loops.pop();
            }
            InstKind::GridSync if !top => return Err("a grid barrier stands below the top level".into()),
            InstKind::Barrier | InstKind::GridSync => {}
        }
        Ok(false)
    }

    /// An atomic or subgroup operation has the result of its row.
    fn operation(&self, id: InstId, results: &[ValueType], info: &OpInfo, ty: Scalar) -> Result<(), String> {
        let expected: Vec<ValueType> = info.result_type(ty).map(ValueType::Scalar).into_iter().collect();
        if results == expected { Ok(()) } else { Err(format!("instruction {} has not the results of its row", id.0)) }
    }

    fn row(&self, info: &OpInfo, ty: Scalar, operands: &[Value]) -> Result<(), String> {
        let wanted = info.operands.iter().map(|operand| match operand {
            Operand::T => ValueType::Scalar(ty),
            Operand::Fixed(scalar) => ValueType::Scalar(*scalar),
        });
        let fits = info.over.contains(ty) && operands.iter().map(|operand| self.ty(*operand)).eq(wanted);
        if fits { Ok(()) } else { Err(format!("the operands of {} do not fit its row for {ty}", info.mnemonic)) }
    }

    fn op_type(&self, op: &Op) -> Result<ValueType, String> {
        let of_row = |info: &OpInfo, ty: Scalar, operands: &[Value]| {
            self.row(info, ty, operands)?;
            info.result_type(ty).map(ValueType::Scalar).ok_or_else(|| format!("{} gives no value", info.mnemonic))
        };
        match op {
            Op::Unary { op, ty, operand } => of_row(op.info(), *ty, &[*operand]),
            Op::Binary { op, ty, left, right } => of_row(op.info(), *ty, &[*left, *right]),
            Op::Ternary { op, ty, operands } => of_row(op.info(), *ty, operands),
            Op::Cast { from, to, value } | Op::Bitcast { from, to, value } => {
                self.expect(*value, *from, "the operand")?;
                Ok((*to).into())
            }
            Op::Vector { components } => match self.types(components)[..] {
                [ValueType::Scalar(first), ref rest @ ..] if rest.iter().all(|ty| *ty == ValueType::Scalar(first)) => {
                    Ok(ValueType::Vector(first, components.len() as u8))
                }
                _ => Err("a vector of different types".into()),
            },
            Op::Extract { vector, component } => match self.ty(*vector) {
                ValueType::Vector(scalar, count) if *component < count => Ok(scalar.into()),
                ValueType::Vector(..) | ValueType::Scalar(_) => Err("a component that does not exist".into()),
            },
        }
    }
}
