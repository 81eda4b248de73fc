//! The slow path of a probe: the context behind gs is not this thread's.
//!
//! A new thread inherits its creator's gs base, a forked child finds zeros (MADV_WIPEONFORK). No
//! system call, no libc: the thread id is read from the thread control block where its place is
//! known, else it stays 0.
use crate::instrument::asm::{Asm, Label, Zone};
use hopscope_event::layout::{
    CONTEXTS_MAX, Context, FREE_QUEUE_OFFSET, PoolHeader, RingHeader, ring_bytes,
    ring_header_offset,
};
use hopscope_event::record::RecordKind;
use std::mem::offset_of;

#[derive(Debug, Clone, Copy)]
pub struct SlowConfig {
    /// Address of the contexts in the target, and how many there are.
    pub contexts_at: u64,
    pub contexts: u32,
    /// Address of the pool in the target.
    pub pool_at: u64,
    pub ring_records_log2: u32,
    /// Offset of the kernel thread id from the fs base, where it is known for this libc.
    pub tid_at_fs: Option<u32>,
    /// Forked children claim rings too.
    pub follow_forks: bool,
}

/// The routine's two forms: a call without a ring is counted once, at its entry.
#[derive(Debug, Clone, Copy)]
pub struct Slow {
    /// For entry probes.
    pub entry: Label,
    /// For every other probe: counts nothing.
    pub other: Label,
}

impl Slow {
    /// Unbound labels for both.
    pub fn labels(asm: &mut Asm) -> Slow {
        Slow {
            entry: asm.label(),
            other: asm.label(),
        }
    }

    /// The same routine for both, where nothing counts.
    pub fn both(routine: Label) -> Slow {
        Slow {
            entry: routine,
            other: routine,
        }
    }

    pub fn of(self, kind: RecordKind) -> Label {
        match kind {
            RecordKind::Entry => self.entry,
            RecordKind::Exit | RecordKind::TailExit | RecordKind::Escape | RecordKind::Value => {
                self.other
            }
        }
    }
}

/// Both forms in bytes that may lie anywhere, in the cold zone.
pub struct Claims {
    pub bytes: Vec<u8>,
    pub entry: u32,
    pub other: u32,
}

impl Claims {
    pub fn new(config: &SlowConfig) -> Claims {
        let mut asm = Asm::new();
        let slow = Slow::labels(&mut asm);
        claims(&mut asm, config, slow);
        Claims {
            bytes: asm.link(0).expect("it refers to nothing but itself"),
            entry: asm.offset_in(Zone::Cold, slow.entry),
            other: asm.offset_in(Zone::Cold, slow.other),
        }
    }
}

/// Emits both forms.
pub fn claims(asm: &mut Asm, config: &SlowConfig, slow: Slow) {
    claim(asm, config, slow.entry, true);
    claim(asm, config, slow.other, false);
}

/// Emits the routine: out rcx = ring header of this thread, or 0; everything else but the flags
/// is kept. Called with `call` from probes, on the thread's own stack below its red zone. With
/// `counts`, what finds no ring is counted as a call.
pub fn claim(asm: &mut Asm, config: &SlowConfig, entry: Label, counts: bool) {
    let z = Zone::Cold;
    let (none, again, out) = (asm.label(), asm.label(), asm.label());
    let (foreign, no_free) = match counts {
        true => (asm.label(), asm.label()),
        false => (none, none),
    };
    asm.align(z, 16, 0xcc);
    asm.bind(z, entry);
    asm.bytes(z, &[0x50, 0x52, 0x53]); // push rax, rdx, rbx
    // rdx = gs base - contexts; above the last one: a gs that is none of ours
    asm.bytes(z, &[0xf3, 0x48, 0x0f, 0xae, 0xca]); // rdgsbase rdx
    asm.bytes(z, &[0x48, 0xb8]); // mov rax, imm64
    asm.bytes(z, &config.contexts_at.to_le_bytes());
    asm.bytes(z, &[0x48, 0x29, 0xc2]); // sub rdx, rax
    asm.bytes(z, &[0x48, 0x81, 0xfa]); // cmp rdx, imm32
    asm.bytes(
        z,
        &(config.contexts * size_of::<Context>() as u32).to_le_bytes(),
    );
    asm.rel32(z, &[0x0f, 0x83], foreign, &[]); // jae
    // mov rbx, gs:[pool]; test rbx, rbx; jz none (forked child)
    asm.bytes(z, &[0x65, 0x48, 0x8b, 0x1c, 0x25]);
    asm.bytes(z, &(offset_of!(Context, pool) as u32).to_le_bytes());
    asm.bytes(z, &[0x48, 0x85, 0xdb]);
    if config.follow_forks {
        let known = asm.label();
        asm.rel32(z, &[0x0f, 0x85], known, &[]); // jnz
        asm.bytes(z, &[0x48, 0xbb]); // mov rbx, imm64: it lies where its parent has it
        asm.bytes(z, &config.pool_at.to_le_bytes());
        asm.bind(z, known);
    } else {
        asm.rel32(z, &[0x0f, 0x84], none, &[]);
    }

    asm.bind(z, again);
    // mov rax, [rbx + free_head]; cmp rax, [rbx + free_tail]; jae no_free
    asm.bytes(z, &[0x48, 0x8b, 0x83]);
    asm.bytes(z, &(offset_of!(PoolHeader, free_head) as u32).to_le_bytes());
    asm.bytes(z, &[0x48, 0x3b, 0x83]);
    asm.bytes(z, &(offset_of!(PoolHeader, free_tail) as u32).to_le_bytes());
    asm.rel32(z, &[0x0f, 0x83], no_free, &[]);
    // mov ecx, eax; and ecx, MAX-1; mov ecx, [rbx + rcx*4 + queue]
    asm.bytes(z, &[0x89, 0xc1, 0x81, 0xe1]);
    asm.bytes(z, &(CONTEXTS_MAX as u32 - 1).to_le_bytes());
    asm.bytes(z, &[0x8b, 0x8c, 0x8b]);
    asm.bytes(z, &(FREE_QUEUE_OFFSET as u32).to_le_bytes());
    // lea rdx, [rax + 1]; lock cmpxchg [rbx + free_head], rdx; jne again
    asm.bytes(z, &[0x48, 0x8d, 0x50, 0x01]);
    asm.bytes(z, &[0xf0, 0x48, 0x0f, 0xb1, 0x93]);
    asm.bytes(z, &(offset_of!(PoolHeader, free_head) as u32).to_le_bytes());
    asm.rel32(z, &[0x0f, 0x85], again, &[]);

    // cmp ecx, contexts without the spare one; jae no_free: the queue lies in memory that forked
    // children share, and where this thread writes must not be theirs to choose
    asm.bytes(z, &[0x81, 0xf9]);
    asm.bytes(z, &(config.contexts - 1).to_le_bytes());
    asm.rel32(z, &[0x0f, 0x83], no_free, &[]);

    // rdx = context: mov rdx, rcx; shl rdx, 6; mov rax, contexts; add rdx, rax
    asm.bytes(
        z,
        &[
            0x48,
            0x89,
            0xca,
            0x48,
            0xc1,
            0xe2,
            size_of::<Context>().ilog2() as u8,
        ],
    );
    asm.bytes(z, &[0x48, 0xb8]);
    asm.bytes(z, &config.contexts_at.to_le_bytes());
    asm.bytes(z, &[0x48, 0x01, 0xc2]);
    // rcx = ring: imul rcx, rcx, ring bytes; lea rcx, [rbx + rcx + header]
    asm.bytes(z, &[0x48, 0x69, 0xc9]);
    asm.bytes(
        z,
        &(ring_bytes(config.ring_records_log2) as u32).to_le_bytes(),
    );
    asm.bytes(z, &[0x48, 0x8d, 0x8c, 0x0b]);
    let first = ring_header_offset(0, config.ring_records_log2) as u32;
    asm.bytes(z, &first.to_le_bytes());
    if config.follow_forks {
        forked(asm, config);
    }
    match config.tid_at_fs {
        Some(offset) => {
            // mov eax, fs:[offset]; mov [rcx + tid], eax
            asm.bytes(z, &[0x64, 0x8b, 0x04, 0x25]);
            asm.bytes(z, &offset.to_le_bytes());
            asm.bytes(z, &[0x89, 0x81]);
            asm.bytes(z, &(offset_of!(RingHeader, tid) as u32).to_le_bytes());
        }
        // As long: unwind tables name places in this code.
        None => asm.bytes(z, &[0x90; 14]),
    }
    // mov rax, fs:[0]; mov [rcx + owner], rax
    asm.bytes(z, &[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0]);
    asm.bytes(z, &[0x48, 0x89, 0x81]);
    asm.bytes(z, &(offset_of!(RingHeader, owner) as u32).to_le_bytes());
    // Fill the context before gs points to it: a signal handler may probe at any instruction.
    asm.bytes(z, &[0x48, 0x89, 0x5a, offset_of!(Context, pool) as u8]); // mov [rdx+pool], rbx
    asm.bytes(z, &[0x48, 0x89, 0x4a, offset_of!(Context, ring) as u8]); // mov [rdx+ring], rcx
    asm.bytes(z, &[0x48, 0x89, 0x42, offset_of!(Context, owner) as u8]); // mov [rdx+owner], rax
    asm.bytes(z, &[0xf3, 0x48, 0x0f, 0xae, 0xda]); // wrgsbase rdx
    asm.bind(z, out);
    asm.bytes(z, &[0x5b, 0x5a, 0x58, 0xc3]); // pop rbx, rdx, rax; ret

    if counts {
        asm.bind(z, no_free);
        lock_inc_rbx(asm, offset_of!(PoolHeader, calls_unmeasured));
    }
    asm.bind(z, none);
    asm.bytes(z, &[0x31, 0xc9]); // xor ecx, ecx
    asm.rel32(z, &[0xe9], out, &[]);

    if !counts {
        return;
    }
    // gs is not ours, so the pool's address cannot come from there.
    asm.bind(z, foreign);
    asm.bytes(z, &[0x48, 0xbb]); // mov rbx, imm64
    asm.bytes(z, &config.pool_at.to_le_bytes());
    lock_inc_rbx(asm, offset_of!(PoolHeader, calls_foreign));
    asm.rel32(z, &[0xe9], none, &[]);
}

/// Of which forked child the thread is, into its ring (rcx) and its context (rdx), while gs leads to its creator's: the
/// first of a child finds that one wiped, and is what the child is called by. An id that libc does not show is -1.
fn forked(asm: &mut Asm, config: &SlowConfig) {
    let z = Zone::Cold;
    let known = asm.label();
    let in_context = offset_of!(Context, forked);
    // mov eax, gs:[forked]
    asm.bytes(z, &[0x65, 0x8b, 0x04, 0x25]);
    asm.bytes(z, &(in_context as u32).to_le_bytes());
    // cmp qword gs:[pool], 0; jne known
    asm.bytes(z, &[0x65, 0x48, 0x83, 0x3c, 0x25]);
    asm.bytes(z, &(offset_of!(Context, pool) as u32).to_le_bytes());
    asm.bytes(z, &[0]);
    asm.rel32(z, &[0x0f, 0x85], known, &[]);
    match config.tid_at_fs {
        Some(offset) => {
            asm.bytes(z, &[0x64, 0x8b, 0x04, 0x25]); // mov eax, fs:[offset]
            asm.bytes(z, &offset.to_le_bytes());
        }
        // or eax, -1; as long
        None => asm.bytes(z, &[0x83, 0xc8, 0xff, 0x90, 0x90, 0x90, 0x90, 0x90]),
    }
    asm.bind(z, known);
    // mov [rcx + forked], eax; mov [rdx + forked], eax
    asm.bytes(z, &[0x89, 0x81]);
    asm.bytes(z, &(offset_of!(RingHeader, forked) as u32).to_le_bytes());
    asm.bytes(z, &[0x89, 0x42, in_context as u8]);
}

fn lock_inc_rbx(asm: &mut Asm, offset: usize) {
    asm.bytes(Zone::Cold, &[0xf0, 0x48, 0xff, 0x83]);
    asm.bytes(Zone::Cold, &(offset as u32).to_le_bytes());
}
