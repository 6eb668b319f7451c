import { expect, vi } from 'vitest'

// Files that start whole programs or generate real proofs get ten minutes a test. A time limit only ends a test whose
// event never comes: it is far longer than any of them takes on a busy machine.
const isSlow = expect.getState().testPath?.includes('.slow.') ?? false
if (isSlow) vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })
