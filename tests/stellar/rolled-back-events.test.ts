import type { rpc } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { readHistory } from '#lib/disclosure/history.ts'
import { readPaymentsSince, readTokenEvents } from '#lib/relay/channel-events.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import { archived, LATEST, OLDEST, serverWith } from '../disclosure/stub-sources.ts'
import { keypair, TOKEN } from '../wallet/fixtures.ts'

const [payer, payee] = [keypair('payer').publicKey(), keypair('payee').publicKey()]
const registration = archived(1_100, 'register', [payer])
const kept = archived(1_200, 'transfer', [payer, payee])
const rolledBack = archived(1_300, 'transfer', [payer, payee])

/** A node that returns the events of calls that were rolled back inside a successful transaction, too. */
function nodeWithAllEvents(): rpc.Server {
  const server = serverWith([registration, kept, rolledBack])
  const getEvents = server.getEvents.bind(server)
  return Object.assign(server, {
    getEvents: async (request: rpc.Api.GetEventsRequest) => {
      const { events, ...page } = await getEvents(request)
      const mark = (event: rpc.Api.EventResponse) => ({
        ...event,
        inSuccessfulContractCall: event.id !== rolledBack.id,
      })
      return { ...page, events: events.map(mark) }
    },
  })
}

describe('ignores the events of calls that were rolled back', () => {
  const server = nodeWithAllEvents()
  const network = { server, call: async () => ({ oldestLedger: OLDEST, latestLedger: LATEST }) } as unknown as Network

  test('in the wallet', async () => {
    const { events } = await readAccountEvents({ rpc: server, token: TOKEN } as Deployment, payer)
    expect(events.map(({ id }) => id)).toEqual([registration.id, kept.id])
  })

  test('in a disclosure', async () => {
    const { events } = await readHistory({ rpc: server, token: TOKEN, archives: [] }, payer)
    expect(events.map(({ id }) => id)).toEqual([registration.id, kept.id])
  })

  test('in the relay', async () => {
    const source = { network, token: TOKEN }
    expect(await readTokenEvents(source, payer, undefined)).toMatchObject({ transfers: [{ hash: kept.tx_hash }] })
    expect(await readPaymentsSince(source, [payer], () => 1)).toMatchObject({ payments: [{ hash: kept.tx_hash }] })
  })
})
