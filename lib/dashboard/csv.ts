import { BOM, type CsvValue, csvRecord } from '#lib/text/csv.ts'

/** Streams a CSV file while its rows are read, so it can be of any size. */
export function csvStream(head: readonly string[], parts: AsyncIterable<readonly CsvValue[][]>): ReadableStream {
  const iterator = parts[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(BOM + csvRecord(head))),
    pull: async (controller) => {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value.map(csvRecord).join('')))
    },
    cancel: async () => {
      await iterator.return?.()
    },
  })
}
