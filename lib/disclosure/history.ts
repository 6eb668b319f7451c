import type { rpc } from '@stellar/stellar-sdk'
import type { ArchivedEvents, TokenArchive } from '#lib/wallet/archive.ts'
import { accountFilters } from '#lib/wallet/events.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { fromArchive, fromRpc, ledgerOf, PAGE } from './ledger-source.ts'
import type { LedgerEvent } from './payment.ts'

/** An event of the token, with the payload of its call if an archive has it (base64 XDR). */
export interface HistoryEvent extends LedgerEvent {
  payload?: string | undefined
}

/** Events in ledger order, from when on they are complete: undefined if from the account's registration, or the token's. */
export interface History {
  events: HistoryEvent[]
  completeFrom?: string | undefined
}

/** Where a history is read. */
export interface HistorySource {
  rpc: rpc.Server
  token: string
  archives: readonly TokenArchive[]
}

/** The RPC drops ledgers while it is read, so archives are read this far above its oldest. */
const MARGIN = 100

/**
 * Every event of the token that names `account`, or all of them. Old events come from the first archive that has all.
 * @throws WalletError `archive-unavailable`, or `history-incomplete` if archives are named and none of them is complete
 */
export async function readHistory({ rpc: server, token, archives }: HistorySource, account?: string): Promise<History> {
  const { oldestLedger, latestLedger } = await server.getHealth()
  const floor = Math.min(oldestLedger + 2, latestLedger)
  const seam = archives.length === 0 ? floor : Math.min(oldestLedger + MARGIN, latestLedger)
  const whole: rpc.Api.EventFilter[] = [{ type: 'contract', contractIds: [token] }]
  const filters = account === undefined ? whole : accountFilters(token, account)
  const recent = await readRecent(server, filters, seam)
  if (archives.length === 0) {
    const isRegistered = account !== undefined && recent.events.some(({ topics }) => topics[0] === REGISTER)
    const isWhole = isRegistered || oldestLedger <= 1
    return isWhole ? { events: recent.events } : { events: recent.events, completeFrom: recent.from }
  }
  const old = await readOld(archives, account, seam - 1)
  return { events: [...old, ...recent.events] }
}

/** Base64 XDR of the symbol `register`. */
const REGISTER = 'AAAADwAAAAhyZWdpc3Rlcg=='

async function readRecent(server: rpc.Server, filters: rpc.Api.EventFilter[], startLedger: number) {
  const events: HistoryEvent[] = []
  let page = await server.getEvents({ filters, limit: PAGE, startLedger })
  const from = new Date(Number(page.oldestLedgerCloseTime) * 1_000).toISOString()
  for (;;) {
    events.push(...page.events.map(fromRpc))
    if (page.events.length < PAGE && ledgerOf(page.cursor) >= page.latestLedger) return { events, from }
    page = await server.getEvents({ filters, limit: PAGE, cursor: page.cursor })
  }
}

async function readOld(
  archives: readonly TokenArchive[],
  account: string | undefined,
  through: number,
): Promise<HistoryEvent[]> {
  for (const archive of archives) {
    const { events, complete }: ArchivedEvents =
      account === undefined
        ? await archive.readToken(undefined, through)
        : await archive.readEvents(account, undefined, through)
    if (!complete) continue
    return events.map((event) => ({ ...fromArchive(archive, event), payload: event.payload_xdr }))
  }
  throw new WalletError(
    'history-incomplete',
    `no named archive has all events through ledger ${through}: ${archives.map(({ name }) => name).join(' and ')}`,
  )
}
