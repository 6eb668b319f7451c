import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Networks } from '@stellar/stellar-sdk'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openNetwork, requireFriendbot } from '#lib/cli/client/participants.ts'
import { ConfigurationError } from '#lib/config/environment.ts'
import { readDocument, writeOwnFields } from '#lib/setup/document.ts'

const token = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
const issuer = 'GBBD47IF6LWK7P7MDEVSCWR7DPUWV3NY3DTQEVFL4NAT4AQH3ZLLFLA5'

/** As written by the demos' deployment scripts. */
const DEMO = {
  network: 'testnet',
  rpcUrl: 'https://soroban-testnet.stellar.org/',
  passphrase: Networks.TESTNET,
  deployedAtLedger: 1_234,
  contracts: { token, verifier: token, auditor: token, underlying: token },
  auditor: { id: 0, secretHex: 'deadbeef', keyXHex: 'AB'.repeat(32), keyYHex: '01'.repeat(32) },
  addrF: '0x00',
}

const read = (document: unknown) => readDocument(JSON.stringify(document))

test('reads the document of a demo without its secret', () => {
  const document = read(DEMO)
  expect(document).toMatchObject({ network: 'testnet', rpcUrl: 'https://soroban-testnet.stellar.org' })
  expect(document.auditor).toEqual({ id: 0, key: `${'ab'.repeat(32)}${'01'.repeat(32)}` })
  expect(JSON.stringify(document)).not.toContain('deadbeef')
})

test.each([
  [{ network: 'testnet', passphrase: Networks.TESTNET }, 'testnet'],
  [{ network: undefined, passphrase: Networks.TESTNET }, 'testnet'],
  [{ network: 'local', passphrase: Networks.TESTNET }, 'local'],
  [{ network: 'local', passphrase: 'Standalone Network ; February 2017' }, 'local'],
  [{ network: 'futurenet', passphrase: Networks.FUTURENET }, 'local'],
])('reads %j as %s', (change, network) => {
  expect(read({ ...DEMO, ...change }).network).toBe(network)
})

test.each([
  ['the main network by its passphrase', { passphrase: Networks.PUBLIC }, /main network/],
  ['the main network under the name of another', { network: 'local', passphrase: Networks.PUBLIC }, /main network/],
  ['the main network by its name', { network: 'Mainnet', passphrase: 'x' }, /main network/],
  ['the public one by its name', { network: 'public', passphrase: 'x' }, /main network/],
  ['testnet with the passphrase of another', { passphrase: 'x' }, /contradict/],
  ['no passphrase', { passphrase: undefined }, /passphrase/],
  ['no RPC', { rpcUrl: undefined }, /rpcUrl/],
  ['an RPC that is not a URL', { rpcUrl: 'file:///etc/passwd' }, /rpcUrl: is not an http/],
  ['no contracts', { contracts: undefined }, /contracts/],
  ['no token', { contracts: { underlying: token } }, /contracts.token/],
  ['an account instead of a token', { contracts: { token: issuer } }, /contracts.token: is not a contract/],
  ['no auditor', { auditor: undefined }, /auditor/],
  ['an auditor without a number', { auditor: { id: -1 } }, /auditor.id/],
  ['an auditor key that is too short', { auditor: { id: 0, key: 'abcd' } }, /auditor.key: is not 128/],
  ['an issuer that is a contract', { asset: { code: 'USDC', issuer: token } }, /asset.issuer: is not an account/],
])('refuses %s', (_, change, problem) => {
  const attempt = () => read({ ...DEMO, ...change })
  expect(attempt).toThrow(ConfigurationError)
  expect(attempt).toThrow(problem)
  expect(attempt).not.toThrow(/deadbeef/)
})

test.each(['', 'hunter2', '[]', 'null', '"x"', `{"auditor":{"secretHex":"deadbeef"`, ' '.repeat(100_001)])(
  'refuses text that is not a document without echoing it: %#',
  (text) => {
    expect(() => readDocument(text)).toThrow(/^--deployment: /)
    expect(() => readDocument(text)).not.toThrow(/hunter2|deadbeef/)
  },
)

describe('the wallet command', () => {
  const COMPLETE = { ...DEMO, friendbotUrl: 'https://friendbot.example' }

  async function open(document: object) {
    const folder = await mkdtemp(path.join(tmpdir(), 'document-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = path.join(folder, 'deployment.json')
    await writeFile(file, JSON.stringify(document))
    return await openNetwork(file)
  }

  test('needs no friendbot to read', async () => {
    const network = await open({ ...COMPLETE, friendbotUrl: undefined })
    expect(network).toMatchObject({ token, friendbotUrl: undefined })
    expect(() => requireFriendbot(network)).toThrow(/friendbotUrl/)
  })

  test('reads the document from a file', async () => {
    expect(await open(COMPLETE)).toMatchObject({
      token,
      auditor: token,
      auditorId: 0,
      friendbotUrl: COMPLETE.friendbotUrl,
    })
  })

  test.each([
    ['contracts.auditor', { contracts: { token, verifier: token } }],
    ['contracts.verifier', { contracts: { token, auditor: token } }],
    ['contracts.token', { contracts: { auditor: token, verifier: token } }],
    ['auditor.id', { auditor: {} }],
    ['rpcUrl', { rpcUrl: undefined }],
    ['passphrase', { passphrase: undefined }],
  ])('names %s if the document lacks it', async (field, change) => {
    await expect(open({ ...COMPLETE, ...change })).rejects.toThrow(field)
  })

  test.each([
    ['testnet with another passphrase', { passphrase: 'x' }, /contradict/],
    ['the main network', { network: 'local', passphrase: Networks.PUBLIC }, /main network/],
    ['a verifier that is no contract', { contracts: { ...COMPLETE.contracts, verifier: 'x' } }, /contracts.verifier/],
    ['an RPC that is no URL', { rpcUrl: 'soroban-testnet' }, /rpcUrl/],
  ])('refuses what setup refuses: %s', async (_, change, problem) => {
    await expect(open({ ...COMPLETE, ...change })).rejects.toThrow(problem)
  })
})

describe('what setup adds to a document', () => {
  const relayWith = (x: string) => ({ publicKey: { kty: 'EC', crv: 'P-256', x, y: 'y' }, channels: [issuer] })
  const archiveUrl = 'https://payroll.example/api/archive'

  async function add(document: object) {
    const folder = await mkdtemp(path.join(tmpdir(), 'document-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = path.join(folder, 'deployment.json')
    await writeFile(file, JSON.stringify(document))
    writeOwnFields(file, { relay: relayWith('own'), archiveUrl })
    return JSON.parse(await readFile(file, 'utf8'))
  }

  test('is its relay and its archive', async () => {
    expect(await add(DEMO)).toEqual({ ...DEMO, relay: relayWith('own'), archiveUrl })
    // Its channels may have changed.
    const before = { ...DEMO, relay: { ...relayWith('own'), channels: [] }, archiveUrl: 'https://other.example' }
    expect(await add(before)).toEqual({ ...DEMO, relay: relayWith('own'), archiveUrl: 'https://other.example' })
  })

  test('may replace the relay of another service', async () => {
    expect(await add({ ...DEMO, relay: relayWith('foreign') })).toMatchObject({ relay: relayWith('own') })
  })
})
