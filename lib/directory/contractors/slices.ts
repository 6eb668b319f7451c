import { setImmediate } from 'node:timers/promises'

/** How long the process may be held before others have their turn, in milliseconds. */
const SLICE_MS = 10

/** `items.map(convert)`, in slices, so that a long list does not keep everybody else waiting. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  let began = performance.now()
  for (const [index, item] of items.entries()) {
    results.push(convert(item, index))
    if (performance.now() - began < SLICE_MS) continue
    await setImmediate()
    began = performance.now()
  }
  return results
}
