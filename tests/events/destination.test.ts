import { expect, test } from 'vitest'
import {
  AddressRefused,
  guardedLookup,
  isPublicAddress,
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
