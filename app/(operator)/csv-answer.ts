import { csvStream } from '#lib/dashboard/csv.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import type { CsvValue } from '#lib/text/csv.ts'
import { readOperator } from './require-operator.ts'

/**
 * A CSV file for the operator.
 * @throws Refusal unauthenticated
 */
export async function answerCsv(
  name: string,
  head: readonly string[],
  read: (service: Service) => Promise<AsyncIterable<CsvValue[][]>>,
): Promise<Response> {
  const service = await readOperator()
  if (!service) throw new Refusal('unauthenticated')
  const day = service.now().toISOString().slice(0, 10)
  return new Response(csvStream(head, await read(service)), {
    headers: {
      'Content-Type': 'text/csv; charset=utf-8',
      'Content-Disposition': `attachment; filename="${name}-${day}.csv"`,
    },
  })
}
