/** Makes `await using` close `thing` at the end of the block. */
export function disposable<Thing extends { close(): Promise<unknown> }>(thing: Thing): Thing & AsyncDisposable {
  return Object.assign(thing, { [Symbol.asyncDispose]: async () => void (await thing.close()) })
}
