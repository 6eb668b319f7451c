import { vi } from 'vitest'

/** Captures every logged line until `vi.restoreAllMocks()`. */
export function captureLog(): string[] {
  const lines: string[] = []
  const write = (...parts: unknown[]) => void lines.push(parts.map(String).join(' '))
  vi.spyOn(console, 'log').mockImplementation(write)
  vi.spyOn(console, 'error').mockImplementation(write)
  return lines
}
