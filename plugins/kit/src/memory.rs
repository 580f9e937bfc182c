//! The heap and the panic handler of a plugin in the sandbox.
//!
//! An instance lives for a step or a few, so the heap only moves forward. Two cases give memory back, because they are
//! what a step does all the time: the newest block may grow, shrink or go in place (a string being written), and once
//! nothing is alive, as after each call, the heap starts over.

use alloc::alloc::{alloc, realloc};
use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::Cell;
use core::panic::PanicInfo;
use core::ptr;

/// The size of a page of linear memory, in bytes.
const PAGE: usize = 65_536;

// The compiler calls `memcmp`. The C library that comes with the target has it, and of a library the linker takes only
// what is called: nothing that imports WASI.
#[link(name = "c")]
unsafe extern "C" {}

#[global_allocator]
static HEAP: Heap = Heap { next: Cell::new(0), end: Cell::new(0), alive: Cell::new(0) };

/// A bump allocator from the end of the program's data to the end of linear memory, which grows as needed.
struct Heap {
    /// The address after the newest block; 0 before the first.
    next: Cell<usize>,
    /// The end of linear memory.
    end: Cell<usize>,
    /// How many blocks are alive.
    alive: Cell<usize>,
}

// SAFETY: a component of this world has one thread.
unsafe impl Sync for Heap {}

impl Heap {
    /// The first address of the heap.
    fn base() -> usize {
        unsafe extern "C" {
            static __heap_base: u8;
        }
        (&raw const __heap_base).addr()
    }

    /// Makes linear memory reach `end`; false when the host refuses.
    fn reach(&self, end: usize) -> bool {
        if end <= self.end.get() {
            return true;
        }
        let pages = (end - self.end.get()).div_ceil(PAGE);
        if wasm32::memory_grow(0, pages) == usize::MAX {
            return false;
        }
        self.end.set(wasm32::memory_size(0) * PAGE);
        true
    }

    /// Whether the block is the newest one.
    fn is_newest(&self, block: *mut u8, size: usize) -> bool {
        block.addr() + size == self.next.get()
    }
}

// SAFETY: blocks never overlap: each starts at or after the end of the newest one, and `next` moves back only over a
// block that was freed or shrunk, or when none is alive.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.next.get() == 0 {
            self.next.set(Self::base());
            self.end.set(wasm32::memory_size(0) * PAGE);
        }
        let block = self.next.get().checked_next_multiple_of(layout.align());
        let Some((block, end)) = block.and_then(|block| Some((block, block.checked_add(layout.size())?))) else {
            return ptr::null_mut();
        };
        if !self.reach(end) {
            return ptr::null_mut();
        }
        self.next.set(end);
        self.alive.set(self.alive.get() + 1);
        ptr::with_exposed_provenance_mut(block)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.alive.set(self.alive.get() - 1);
        if self.alive.get() == 0 {
            self.next.set(Self::base());
        } else if self.is_newest(block, layout.size()) {
            self.next.set(block.addr());
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.is_newest(block, layout.size()) {
            let Some(end) = block.addr().checked_add(size) else { return ptr::null_mut() };
            if !self.reach(end) {
                return ptr::null_mut();
            }
            self.next.set(end);
            return block;
        }
        if size <= layout.size() {
            return block;
        }
        // SAFETY: the caller vouches for the block and for the size, and the new block is larger than the old one.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size());
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

/// What the host calls for memory to put arguments in (the canonical ABI's `realloc`).
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, align: usize, new_size: usize) -> *mut u8 {
    // SAFETY: the canonical ABI passes an alignment that is a power of two, and for `old` what it was given earlier.
    let block = unsafe {
        if old_size != 0 {
            realloc(old, Layout::from_size_align_unchecked(old_size, align), new_size)
        } else if new_size != 0 {
            alloc(Layout::from_size_align_unchecked(new_size, align))
        } else {
            ptr::without_provenance_mut(align)
        }
    };
    if block.is_null() {
        wasm32::unreachable();
    }
    block
}

/// Ends the step. Without an import there is nobody to tell why: the host sees `unreachable` and the backtrace.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}
