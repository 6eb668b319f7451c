import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { startServing } from '#lib/cli/process/serve.ts'
import { listenHostOf } from '#lib/config/listen-host.ts'
import { freePort } from '../support/port.ts'

/** An address of this machine that others can reach, or undefined if there is none. */
const [reachable] = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, family }) => !internal && family === 'IPv4')
  .map(({ address }) => address)
const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(variables: Record<string, string>): Promise<{ port: number; relayPort: number }> {
  const [port, relayPort, ledgerPort] = [await freePort(), await freePort(), await freePort()]
  const directory = await mkdtemp(join(tmpdir(), 'payroll-listen-'))
  closers.push(() => rm(directory, { recursive: true }))
  const { stop } = await startServing(`http://127.0.0.1:${port}`, {
    PORT: String(port),
    RELAY_PORT: String(relayPort),
    DEVNET_PORT: String(ledgerPort),
    DATA_DIR: directory,
    ...variables,
  })
  closers.push(stop)
  return { port, relayPort }
}

const accepts = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, host)
    socket.on('error', () => resolve(false))
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })

test('limits the service and its relay to connections from this machine with an embedded ledger', async () => {
  // White space is no RPC: the ledger is embedded.
  const { port, relayPort } = await start({ STELLAR_RPC_URL: ' ' })
  for (const each of [port, relayPort]) {
    await expect.poll(() => accepts('127.0.0.1', each)).toBe(true)
    // The second listener starts after the first.
    await expect.poll(() => accepts('::1', each)).toBe(hasIpv6)
    if (reachable) expect(await accepts(reachable, each)).toBe(false)
  }
  if (hasIpv6) expect((await fetch(`http://[::1]:${port}/api/health`)).status).toBe(200)
})

test('accepts connections from other machines with LISTEN_HOST', async () => {
  const { port, relayPort } = await start({ LISTEN_HOST: '0.0.0.0' })
  for (const each of [port, relayPort]) await expect.poll(() => accepts(reachable ?? '127.0.0.1', each)).toBe(true)
})

describe('the address to listen on', () => {
  test.each<[Record<string, string>, string | undefined]>([
    [{}, '127.0.0.1'],
    [{ STELLAR_NETWORK: 'local', STELLAR_RPC_URL: '' }, '127.0.0.1'],
    [{ STELLAR_RPC_URL: 'http://localhost:8000/rpc' }, undefined],
    [{ STELLAR_NETWORK: 'testnet' }, undefined],
    [{ LISTEN_HOST: '0.0.0.0' }, '0.0.0.0'],
    [{ LISTEN_HOST: '127.0.0.1', STELLAR_NETWORK: 'testnet' }, '127.0.0.1'],
    [{ VERCEL: '1' }, undefined],
  ])('with %j is %s', (variables, host) => {
    expect(listenHostOf(variables)).toBe(host)
  })
})
