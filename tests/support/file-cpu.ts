import { afterAll, expect } from 'vitest'
import { cpuSecondsOf, recordCpu } from './cpu.ts'

// Set-up files run before each test file is loaded, and their hooks after those of the file.
const before = cpuSecondsOf(process.pid)
afterAll(() => recordCpu(expect.getState().testPath ?? '', cpuSecondsOf(process.pid) - before))
