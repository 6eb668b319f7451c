/** The same thing, which `await using` closes at the end of its block. */
export function disposable<Thing extends { close(): Promise<unknown> }>(thing: Thing): Thing & AsyncDisposable {
  return Object.assign(thing, { [Symbol.asyncDispose]: async () => void (await thing.close()) })
}
