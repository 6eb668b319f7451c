import { expect, vi } from 'vitest'

// Files that start whole programs or generate real proofs get ten minutes a test. A time limit only ends a test that
// waits for an event that never happens. It is far longer than any test takes on a busy machine.
const isLong = expect.getState().testPath?.includes('.long.') ?? false
if (isLong) vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })
