import { setTimeout } from 'node:timers/promises'
import { openArchive, readTokenEvents } from '#lib/archive/history.ts'
import { foreignSince } from '#lib/archive/identity.ts'
import { type ArchiveContext, ingest } from '#lib/archive/ingest.ts'
import { covers } from '#lib/archive/ranges.ts'
import { fetchEvents, readWindow } from '#lib/archive/source.ts'

/** Rounds that may fail because a service holds the claim. */
const MAX_ROUNDS = 120
const PAGE = 1_000

/** All contradictions between the archive and the ledger's events after a history. */
export async function findUntrueEvents(context: ArchiveContext): Promise<string[]> {
  const { network, token } = context
  const db = await context.database()
  const { oldestLedger, latestLedger } = await readWindow(network)
  const open = () => openArchive(db, token)
  let archive = await open()
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    if (archive && covers(archive.ranges, oldestLedger, latestLedger)) break
    await ingest(context).catch(() => undefined)
    await setTimeout(500)
    archive = await open()
  }
  if (!archive) return ['nothing is archived']
  const untruths: string[] = []
  const { ranges } = archive
  if (await foreignSince(db, token)) untruths.push('a network that was never reset counts as foreign')
  if (ranges.length !== 1) untruths.push(`the archive has ${ranges.length - 1} gaps`)

  const expected: string[] = []
  for (let from = oldestLedger; from <= latestLedger; ) {
    const { events, through } = await fetchEvents(network, token, from)
    expected.push(...events.filter(({ ledger }) => ledger <= latestLedger).map(({ id, value }) => `${id} ${value}`))
    from = through + 1
  }
  const archived: string[] = []
  for (let after: string | undefined; ; ) {
    const range = { fromLedger: oldestLedger, toLedger: latestLedger, after, limit: PAGE }
    const { events, cursor } = await readTokenEvents(db, archive, range)
    archived.push(...events.map(({ id, data_xdr }) => `${id} ${data_xdr}`))
    if (cursor === null) break
    after = cursor
  }
  const first = expected.findIndex((event, index) => event !== archived[index])
  if (archived.length !== expected.length || first >= 0) {
    untruths.push(`${archived.length} events are archived of ${expected.length}; the first that differs is ${first}`)
  }
  return untruths
}
