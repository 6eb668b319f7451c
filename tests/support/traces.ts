import { afterAll, expect } from 'vitest'

/** The global functions, by name, which all files of a process share. */
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

// A mock, clock or polyfill that one file leaves behind would break a later one.
const before = readFunctions()
afterAll(() => {
  const after = readFunctions()
  expect([...before.keys()].filter((name) => after.get(name) !== before.get(name))).toEqual([])
})
