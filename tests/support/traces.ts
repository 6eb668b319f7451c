import { afterAll, expect } from 'vitest'

/** Functions that every file of a process shares, by name. */
function readFunctions(): Map<string, unknown> {
  const shared: object[] = [globalThis, console, performance]
  return new Map(
    shared.flatMap((owner) =>
      ['now', ...Object.getOwnPropertyNames(owner)]
        .map((name) => [name, Reflect.get(owner, name)] as const)
        .filter(([, value]) => typeof value === 'function'),
    ),
  )
}

// A file that leaves a mock, a clock or a polyfill behind would break one that comes after it, far from the cause.
const before = readFunctions()
afterAll(() => {
  const after = readFunctions()
  expect([...before.keys()].filter((name) => after.get(name) !== before.get(name))).toEqual([])
})
