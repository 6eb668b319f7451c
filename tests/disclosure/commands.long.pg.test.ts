import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ingest } from '#lib/archive/ingest.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { openHttpArchive } from '#lib/wallet/archive.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { openTestService, type SignedInPayer, type TestService } from '../support/test-service.ts'
import { holder } from '../wallet/fixtures.ts'
import { delegate, payFromDelegation } from './delegation.ts'
import { FakeLedger } from './fake-ledger.ts'

const USDC = 1_0000000n
const HISTORY = 500

const run = promisify(execFile)

let service: TestService<'embedded'>
let employer: SignedInPayer
let contractor: SignedInPayer
/** pays from the delegation of `owner`, once */
let channel: SignedInPayer
let owner: SignedInPayer
let delegatedHash: string
let folder: string
/** the hashes of the payments to the contractor */
const hashes: string[] = []

/** An RPC whose latest ledger is older than 30 s reports that it is not healthy. */
const CLOSE_MS = 5_000

/** Runs a command in a separate process. */
async function execute(name: 'disclosure' | 'wallet' | 'auditor' | 'relay', ...args: string[]) {
  service.ledger.devnet.closeLedger()
  const closing = setInterval(service.ledger.devnet.closeLedger, CLOSE_MS)
  const child = run(process.execPath, [`lib/cli/${name}.ts`, ...args, '--network', file('deployment.json')], {
    maxBuffer: 1e8,
    env: { ...process.env, CHANNEL_SEEDS: channel.signer.secret() },
  })
  return await child.finally(() => clearInterval(closing))
}

const command = async (...args: Parameters<typeof execute>): Promise<string> =>
  (await execute(...args)).stdout.trimEnd()

const file = (name: string) => path.join(folder, name)

const failing = async (work: Promise<string>): Promise<{ code: number; stderr: string }> =>
  work.then(
    (output) => expect.fail(`succeeded: ${output}`),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr: stderr.trimEnd() }),
  )

async function whileLedgersClose<Result>(work: () => Promise<Result>): Promise<Result> {
  const closing = setInterval(service.ledger.devnet.closeLedger, 20)
  return await work().finally(() => clearInterval(closing))
}

async function pay(amount: bigint): Promise<void> {
  const archives = [openHttpArchive(`${service.base}/api/archive`, service.ledger.network.token)]
  const { spendable: opening } = await syncBalance({ ...service.ledger.network, archives }, employer)
  const { signedXdr } = await buildTransfer(service.ledger.network, employer, {
    to: contractor.address,
    amount,
    opening,
  })
  const { status, body } = await whileLedgersClose(() => service.post(employer, { signedXDR: signedXdr }))
  expect(status).toBe(200)
  hashes.push(String(body.hash))
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'disclosure-'))
  service = await openTestService({
    ledger: 'embedded',
    closeMs: 0,
    historyLedgers: HISTORY,
    http: true,
    choresEveryMs: 0,
  })
  await whileLedgersClose(async () => {
    employer = await service.employ(1_000n * USDC)
    contractor = await service.employ(0n)
    channel = await service.employ(0n)
    owner = await service.employ(100n * USDC)
    const { network } = service.ledger
    await delegate(network, owner, channel.address, 60n * USDC)
    delegatedHash = await payFromDelegation(network, { owner, channel, to: channel.address, amount: 25n * USDC })
  })
  await pay(40n * USDC)
  await pay(2n * USDC)
  await pay(12_5000000n)
  const { auditor } = devnetKeys(service.ledger.network.passphrase)
  // A real network's document: a bank needs no friendbot.
  const response = await fetch(`${service.ledger.devnet.url}/deployment.json`)
  const { friendbotUrl: _, ...deployment } = (await response.json()) as Record<string, unknown>
  await writeFile(file('deployment.json'), JSON.stringify(deployment))
  await writeFile(file('auditor.json'), JSON.stringify({ secret: auditor.toString(16).padStart(64, '0') }))
})
afterAll(async () => {
  await service.close()
  await rm(folder, { recursive: true })
})

const day = 86_400_000
const PERIOD = ['--from', new Date(Date.now() - day).toISOString(), '--to', new Date(Date.now() + day).toISOString()]
const KEY = () => ['--key', file('requester.json')]

const ask = (...question: string[]) =>
  command('disclosure', 'request', '--out', file('request.json'), ...KEY(), '--account', ...question)

const verify = (...given: string[]) =>
  command(
    'disclosure',
    'verify',
    '--request',
    file('request.json'),
    '--bundle',
    file('bundle.json'),
    ...KEY(),
    ...given,
  )

const answering = () => ['--request', file('request.json'), '--out', file('bundle.json')]

describe('while the RPC has the payments', () => {
  test('a payee discloses one payment', async () => {
    await expect(ask(contractor.address, '--role', 'recipient')).resolves.toContain('asks for one payment')
    expect((await stat(file('requester.json'))).mode & 0o777).toBe(0o600)
    const request = await readFile(file('request.json'), 'utf8')
    const { secret } = JSON.parse(await readFile(file('requester.json'), 'utf8'))
    expect(request).not.toContain(secret)
    await command(
      'wallet',
      'disclose',
      '--secret',
      contractor.signer.secret(),
      ...answering(),
      '--hash',
      hashes[2] ?? '',
    )
    const [outcome, question, payment, ...rest] = (await verify()).split('\n')
    expect(outcome).toBe('verified (embedded ledger: anyone can forge this) 12.5000000')
    expect(question).toBe(`one payment of ${contractor.address}, disclosed by the recipient`)
    expect(payment).toContain(`from ${employer.address}  to ${contractor.address}  ledger`)
    expect(payment).toContain(`${hashes[2]}  read from the RPC`)
    expect(rest).toEqual([])
  })

  test('names the step that fails, and exits with 1', async () => {
    const bundle = await readFile(file('bundle.json'), 'utf8')
    await ask(employer.address, '--role', 'recipient')
    const failed = await failing(verify())
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/^other-account: transaction [0-9a-f]{64}/) })
    await writeFile(file('bundle.json'), bundle.replace('payment-recipient', 'payment-sender'))
    expect(await failing(verify())).toMatchObject({ code: 1, stderr: expect.stringMatching(/^unknown-circuit: /) })
  })

  test('a payer proves that the total reaches a threshold, and reveals no more', async () => {
    await ask(employer.address, '--role', 'sender', ...PERIOD, '--at-least', '50')
    await command('wallet', 'disclose', '--secret', employer.signer.secret(), ...answering())
    const verified = JSON.parse(await verify('--json'))
    expect(verified).toMatchObject({ verified: true, forgeable: true, value: null, atLeast: '50.0000000' })
    expect(verified.payments.map(({ transaction }: { transaction: string }) => transaction)).toEqual([
      hashes[0],
      hashes[2],
    ])
    await ask(employer.address, '--role', 'sender', ...PERIOD, '--at-least', '55')
    const stderr = expect.stringMatching(/^not-true: the payments of this period do not reach the threshold/m)
    const secret = ['--secret', employer.signer.secret()]
    expect(await failing(command('wallet', 'disclose', ...secret, ...answering()))).toMatchObject({ code: 1, stderr })
  })

  test('a statement lists the sent payments, for people and for programs', async () => {
    const secret = ['--secret', employer.signer.secret()]
    const { rows, ...about } = JSON.parse(await command('wallet', 'statement', ...secret, '--format', 'json'))
    expect(about).toMatchObject({
      Account: employer.address,
      'Amounts in': 'USDC',
      Token: service.ledger.network.token,
    })
    expect(rows).toHaveLength(4)
    expect(rows[0]).toMatchObject({ direction: 'deposited', received: null, other: '1000.0000000' })
    expect(rows[1]).toMatchObject({ direction: 'sent', counterparty: contractor.address, sent: '40.0000000' })
    expect(rows[3]).toMatchObject({ runningTotal: '-54.5000000', balance: '945.5000000', transaction: hashes[2] })
    const csv = await command(
      'wallet',
      'statement',
      '--secret',
      contractor.signer.secret(),
      '--format',
      'csv',
      ...PERIOD,
    )
    expect(csv.split('\r\n')[3]).toMatch(/,received,G[A-Z2-7]{55},,12.5000000,,54.5000000,,54.5000000,[0-9a-f]{64},$/)
  })

  test('a statement has the names of a session’s contractors', async () => {
    const { session } = employer
    const body = { name: 'Ada', address: contractor.address }
    expect(await service.ask('POST', '/contractors', { session, body })).toMatchObject({ status: 200 })
    const secret = ['--secret', employer.signer.secret()]
    const own = ['--service', service.base, '--session', session]
    const { rows } = JSON.parse(await command('wallet', 'statement', ...secret, ...own, '--format', 'json'))
    expect(rows.map(({ name }: { name: string }) => name)).toEqual([null, 'Ada', 'Ada', 'Ada'])
  })

  test('an auditor reads the balances after each operation, and finds them on the ledger', async () => {
    const audit = ['statement', '--key', file('auditor.json'), '--account', employer.address, '--format', 'json']
    const { rows, notes } = JSON.parse(await command('auditor', ...audit))
    const read = rows.map(({ operation, amount, spendable }: Record<string, string>) => [operation, amount, spendable])
    expect(read).toEqual([
      ['register', null, '0.0000000'],
      ['deposit', '1000.0000000', '0.0000000'],
      ['merge', null, '1000.0000000'],
      ['transfer sent', '40.0000000', '960.0000000'],
      ['transfer sent', '2.0000000', '958.0000000'],
      ['transfer sent', '12.5000000', '945.5000000'],
    ])
    expect(notes.filter((note: string) => note.startsWith(employer.address))).toEqual([])
  })

  test('a holder discloses its balance', async () => {
    await ask(employer.address, '--balance', 'value')
    await command('wallet', 'disclose', '--secret', employer.signer.secret(), ...answering())
    expect(await verify()).toMatch(
      /^verified .* 945\.5000000\nthe balance of G.*, at ledger \d+, which closed at .*Z, or later$/,
    )
  })

  test('a wallet warns of money that a balance does not include', async () => {
    await ask(contractor.address, '--balance', 'at-most:1')
    const secret = ['--secret', contractor.signer.secret()]
    const { stderr } = await execute('wallet', 'disclose', ...secret, ...answering())
    expect(stderr).toContain('54.5000000 is received and not merged: a balance does not include it')
    expect(await verify()).toMatch(/^verified .* at most 1\.0000000\n/)
  })

  test('a channel discloses a delegated payment with its owner’s signature', async () => {
    await ask(owner.address, '--role', 'sender')
    const payment = ['--request', file('request.json'), '--hash', delegatedHash]
    const secret = ['--secret', owner.signer.secret()]
    const signature = await command(
      'wallet',
      'authorize-disclosure',
      ...secret,
      ...payment,
      '--spender',
      channel.address,
    )
    const out = ['--out', file('bundle.json')]
    const said = await command('relay', 'disclose', ...payment, '--signature', signature, ...out)
    expect(said).toBe(`${file('bundle.json')} discloses one payment of ${owner.address}, disclosed by the sender`)
    const [outcome, , line] = (await verify()).split('\n')
    expect(outcome).toMatch(/^verified .* 25\.0000000$/)
    expect(line).toContain(`paid by ${channel.address}`)
    await ask(owner.address, '--role', 'sender')
    const stderr = expect.stringMatching(
      /^not-authorized: .* has not signed the disclosure of this payment for this request/,
    )
    const again = failing(command('relay', 'disclose', ...payment, '--signature', signature, ...out))
    expect(await again).toMatchObject({ code: 1, stderr })
  })
})

describe('once the RPC has dropped the first payments', () => {
  const archived = () => ['--archive', `${service.base}/api/archive`]

  beforeAll(async () => {
    const { archive } = service.running
    if (!archive) throw new Error('there is no archive')
    service.ledger.devnet.closeLedger()
    await ingest(archive)
    for (let closed = 0; closed <= HISTORY; closed += 1) {
      service.ledger.devnet.closeLedger()
      if (closed % 50 === 0) await ingest(archive)
    }
    await ingest(archive)
    await pay(10n * USDC)
  })

  test('a contractor proves its income to a bank that names the archive', async () => {
    await ask(contractor.address, '--role', 'recipient', ...PERIOD)
    const secret = ['--secret', contractor.signer.secret()]
    await command('wallet', 'disclose', ...secret, ...answering(), ...archived())
    expect(await failing(verify())).toMatchObject({ stderr: expect.stringMatching(/^event-out-of-range: /) })
    const [outcome, question, ...payments] = (await verify(...archived())).split('\n')
    expect(outcome).toBe('verified (embedded ledger: anyone can forge this) 64.5000000')
    expect(question).toMatch(/^the total from .* to .* of G[A-Z2-7]{55}, disclosed by the recipient$/)
    expect(payments.pop()).toMatch(/^A total does not show/)
    expect(payments.map((payment) => payment.replace(/.*read from /, ''))).toEqual([
      ...Array(3).fill(`${service.base}/api/archive`),
      'the RPC',
    ])
  })

  test('an auditor discloses the same total', async () => {
    await ask(contractor.address, '--role', 'auditor', ...PERIOD)
    await command('auditor', 'disclose', '--key', file('auditor.json'), ...answering(), ...archived())
    expect(await verify(...archived())).toMatch(/^verified .* 64\.5000000\n/)
  })

  test('a statement without an archive says what is missing', async () => {
    const statement = ['statement', '--secret', contractor.signer.secret(), '--format', 'json', ...archived()]
    const whole = JSON.parse(await command('wallet', ...statement))
    expect(whole).toMatchObject({ rows: { length: 4 }, notes: [expect.stringMatching(/^Balances confirm sums/)] })
    const { rows, notes } = JSON.parse(await command('wallet', ...statement.slice(0, -1), 'none'))
    expect(rows).toHaveLength(1)
    expect(notes.slice(0, -1)).toEqual([
      expect.stringMatching(/^the spendable balance is unknown, and was not compared/),
      expect.stringMatching(/^the receiving balance is unknown, and was not compared/),
      expect.stringMatching(/^Payments before .* are missing/),
    ])
    const csv = ['statement', '--secret', contractor.signer.secret(), '--format', 'csv', '--archive', 'none']
    expect((await execute('wallet', ...csv)).stderr).toMatch(/^Payments before .* are missing/m)
  })

  test('a statement from an archive that invents an income fails, and names it', async () => {
    const { rpc } = service.ledger.network
    const { oldestLedger } = await rpc.getHealth()
    const token = service.ledger.network.token
    const { events } = await openHttpArchive(`${service.base}/api/archive`, token).readToken(undefined, oldestLedger)
    const last = events.at(-1)
    if (!last) throw new Error('the archive is empty')
    const { topics, data } = new FakeLedger().pay(holder('nobody'), contractor, 7_777n * USDC)
    const invented = { ...last, id: last.id.replace(/\d{10}$/, '0000000099'), topics_xdr: topics, data_xdr: data }
    const lying = createServer(async (request, response) => {
      const page = await (await fetch(`${service.base}/api/archive${request.url}`)).json()
      const isOwn = request.url?.includes(`/accounts/${contractor.address}/events`)
      response.end(JSON.stringify(isOwn ? { ...page, events: [...page.events, invented] } : page))
    })
    await once(lying.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(lying.address() as AddressInfo).port}`
    const statement = ['statement', '--secret', contractor.signer.secret(), '--format', 'json', '--archive', url]
    const { code, stderr } = await failing(command('wallet', ...statement)).finally(() => lying.close())
    expect(code).toBe(1)
    expect(stderr).toMatch(
      new RegExp(`^the events from ledger \\d+ to ledger \\d+, read from ${url} and the RPC, do not add up`),
    )
  })
})
