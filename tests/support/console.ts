import { vi } from 'vitest'

/** Every line that is logged until `vi.restoreAllMocks()`, as it is written. */
export function captureLog(): string[] {
  const lines: string[] = []
  const write = (...parts: unknown[]) => void lines.push(parts.map(String).join(' '))
  vi.spyOn(console, 'log').mockImplementation(write)
  vi.spyOn(console, 'error').mockImplementation(write)
  return lines
}
