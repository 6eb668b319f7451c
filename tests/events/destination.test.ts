import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import {
  AddressRefused,
  guardedLookup,
  isPublicAddress,
  openResolver,
  problemOfDestination,
  problemOfUrl,
  type Resolve,
} from '#lib/events/destination.ts'

const PUBLIC = '93.184.216.34'

/** A resolver that answers with these addresses, one list for each request. */
function resolverOf(...answers: string[][]): Resolve {
  let asked = 0
  return async () => {
    const addresses = answers[Math.min(asked, answers.length - 1)] ?? []
    asked += 1
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  }
}

const rules = { allowsLoopback: false, resolve: resolverOf([PUBLIC]) }
const embedded = { ...rules, allowsLoopback: true }

test.each([
  '0.0.0.0',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.255.255.254',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '::ffff:93.184.216.34',
  '64:ff9b::7f00:1',
  '64:ff9b:1::1',
  '100::1',
  '2001::1',
  '2001:20::1',
  '2001:db8::1',
  '2002:7f00:1::1',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  'localhost',
  '',
])('refuses the address %s', (address) => {
  expect(isPublicAddress(address)).toBe(false)
})

test.each([PUBLIC, '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111', '2a00:1450:4001::1'])(
  'accepts the address %s',
  (address) => expect(isPublicAddress(address)).toBe(true),
)

test.each([
  'erp.example/events',
  'http://erp.example/events',
  'ftp://erp.example/events',
  'javascript:alert(1)',
  'https://user@erp.example/',
  'https://user:password@erp.example/',
  'https://erp.example/#part',
  'https://erp.example/#',
  'https://127.0.0.1/',
  'https://2130706433/',
  'https://0x7f.1/',
  'https://0177.0.0.1/',
  'https://127.1/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[fe80::1]/',
  'https://169.254.169.254/latest/meta-data',
  'http://localhost/',
])('refuses the URL %s', (url) => {
  expect(problemOfUrl(rules, url)).toMatch(/^must /)
})

test('accepts a public URL, and on the embedded ledger one of this computer', () => {
  expect(problemOfUrl(rules, 'https://erp.example:8443/events?key=1')).toBeUndefined()
  expect(problemOfUrl(rules, `https://${PUBLIC}/`)).toBeUndefined()
  for (const host of ['localhost:8080', '127.0.0.1', '[::1]:3001'])
    expect(problemOfUrl(embedded, `http://${host}/events`)).toBeUndefined()
  expect(problemOfUrl(embedded, 'http://10.0.0.1/')).toMatch(/^must /)
  expect(problemOfUrl(embedded, 'http://erp.example/')).toMatch(/^must /)
})

test('refuses a host with an address that is not public, and lets a host wait that has none yet', async () => {
  const of = (resolve: Resolve, allowsLoopback = false) =>
    problemOfDestination({ allowsLoopback, resolve }, 'https://erp.example/')
  expect(await of(resolverOf([PUBLIC]))).toBeUndefined()
  expect(await of(resolverOf([PUBLIC, '10.0.0.1']))).toMatch(/public/)
  expect(await of(resolverOf(['::1']), true)).toMatch(/public/)
  expect(await of(() => Promise.reject(new Error('ENOTFOUND')))).toBeUndefined()
  const local = { allowsLoopback: true, resolve: resolverOf(['192.168.0.1']) }
  expect(await problemOfDestination(local, 'http://localhost/')).toMatch(/public/)
})

test('checks the address that a connection is made to, each time it is looked up', async () => {
  const resolve = resolverOf([PUBLIC], ['127.0.0.1'])
  const lookup = guardedLookup({ allowsLoopback: true, resolve }, new URL('https://erp.example/'))
  const ask = (all: boolean) =>
    new Promise((done) => lookup('erp.example', { all }, (error, address) => done(error ?? address)))
  expect(await ask(true)).toEqual([{ address: PUBLIC, family: 4 }])
  expect(await ask(true)).toBeInstanceOf(AddressRefused)
  expect(await ask(false)).toBeInstanceOf(AddressRefused)
})

/** A DNS server that has these addresses of each name, and stays silent about others. Resolves to its `host:port`. */
async function serveNames(names: Record<string, { a?: string; aaaa?: string }>): Promise<string> {
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())
  socket.on('message', (query, { address, port }) => {
    const labels: string[] = []
    let at = 12
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.subarray(at + 1, at + 1 + length).toString())
      at += 1 + length
    }
    const [type, name] = [query.readUInt16BE(at + 1), names[labels.join('.').toLowerCase()]]
    if (!name) return
    const found = type === 1 ? name.a?.split('.').map(Number) : type === 28 ? wordsOf(name.aaaa) : undefined
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(0x8180, 2)
    head.writeUInt16BE(found ? 1 : 0, 6)
    head.writeUInt16BE(0, 8)
    head.writeUInt16BE(0, 10)
    const record = found ? [0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, found.length, ...found] : []
    socket.send(Buffer.concat([head, query.subarray(12, at + 5), Buffer.from(record)]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return `127.0.0.1:${socket.address().port}`
}

/** The bytes of an IPv6 address with eight groups. */
const wordsOf = (address: string | undefined) =>
  address?.split(':').flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])

test('resolves a name to all its addresses of both kinds, and localhost without the DNS', async () => {
  const server = await serveNames({
    'erp.example': { a: PUBLIC, aaaa: '2606:2800:21f:cb07:6820:80da:af6b:8b2c' },
    'new.example': { aaaa: 'fd00:0:0:0:0:0:0:1' },
    'empty.example': {},
  })
  const resolve = openResolver([server])
  expect(await resolve('erp.example')).toEqual([
    { address: PUBLIC, family: 4 },
    { address: '2606:2800:21f:cb07:6820:80da:af6b:8b2c', family: 6 },
  ])
  expect(await resolve('localhost')).toContainEqual({ address: '127.0.0.1', family: 4 })
  await expect(resolve('empty.example')).rejects.toThrow('has no address')
  const strict = { allowsLoopback: false, resolve }
  expect(await problemOfDestination(strict, 'https://erp.example/')).toBeUndefined()
  expect(await problemOfDestination(strict, 'https://new.example/')).toMatch(/public addresses/)
  expect(await problemOfDestination(strict, 'https://localhost/')).toMatch(/public addresses/)
})

test('gives up on a DNS server that does not answer before an attempt does', async () => {
  const resolve = openResolver([await serveNames({})])
  const other = openResolver([await serveNames({ 'erp.example': { a: PUBLIC } })])
  const silent = resolve('silent.example').catch((error: Error) => error)
  // Nothing else waits for it.
  expect(await other('erp.example')).toEqual([{ address: PUBLIC, family: 4 }])
  expect(await silent).toMatchObject({ message: 'silent.example has no address' })
})
