import { Account, Address, MuxedAccount, scValToNative, xdr } from '@stellar/stellar-sdk'
import { beforeEach, describe, expect, it } from 'vitest'
import { contractBalanceKey } from '#lib/devnet/host/asset-contract/contract-balance.ts'
import { accountKey, instanceKey, trustlineKey } from '#lib/devnet/host/entry-key.ts'
import type { InvocationResult } from '#lib/devnet/host/invocation.ts'
import {
  amount,
  apply,
  asset,
  c,
  contractor,
  employer,
  enforce,
  failure,
  g,
  issuer,
  label,
  ledger,
  type Network,
  number,
  openNetwork,
  putAccount,
  type Request,
  record,
  recording,
  stranger,
} from './host-fixture.ts'

let network: Network
beforeEach(() => {
  network = openNetwork()
})

const callOf =
  (contract: 'underlying' | 'native') =>
  (source: Request['source'], name: string, ...args: xdr.ScVal[]): Request => ({
    source,
    contract: network.contracts[contract],
    name,
    args,
  })
const usdc = callOf('underlying')
const xlm = callOf('native')
const transfer = (value: bigint) => usdc(employer, 'transfer', g(employer), g(contractor), amount(value))

function read(request: Request): unknown {
  const result = record(network, request)
  if (!result.ok) throw new Error(result.error)
  expect(result.footprint.readWrite).toEqual([])
  expect(result.auth).toEqual([])
  return scValToNative(result.returnValue)
}

const balance = (holder: xdr.ScVal) => read(usdc(employer, 'balance', holder))
const vault = () => c(network.contracts.auditor)

function eventOf(result: Extract<InvocationResult, { ok: true }>) {
  const body = result.events[0]?.body.value
  return { topics: body?.topics.map((topic) => scValToNative(topic)), data: body && scValToNative(body.data) }
}
const name = `USDC:${issuer.publicKey()}`

describe('reading calls', () => {
  it('return name, symbol, decimals and administrator', () => {
    expect(read(usdc(employer, 'name'))).toBe(name)
    expect(read(usdc(employer, 'symbol'))).toBe('USDC')
    expect(read(usdc(employer, 'decimals'))).toBe(7)
    expect(read(usdc(employer, 'admin'))).toBe(issuer.publicKey())
    expect(read(xlm(employer, 'name'))).toBe('native')
    expect(read(xlm(employer, 'symbol'))).toBe('native')
  })

  it('return whether an address is authorized', () => {
    expect(read(usdc(employer, 'authorized', g(employer)))).toBe(true)
    expect(read(usdc(employer, 'authorized', g(issuer)))).toBe(true)
    expect(failure(network, usdc(employer, 'authorized', g(stranger)))).toBe('Error(Contract, #13)')
  })
})

describe('transfer', () => {
  it('moves between trustlines', () => {
    const result = apply(network, transfer(5n))
    expect(balance(g(employer))).toBe(1_000_0000000n - 5n)
    expect(balance(g(contractor))).toBe(1_000_0000000n + 5n)
    expect(eventOf(result)).toEqual({
      topics: ['transfer', employer.publicKey(), contractor.publicKey(), name],
      data: 5n,
    })
  })

  it('moves XLM between accounts down to the reserve', () => {
    apply(network, xlm(employer, 'transfer', g(employer), g(contractor), amount(99_0000000n)))
    expect(read(xlm(employer, 'balance', g(contractor)))).toBe(199_0000000n)
    const more = xlm(employer, 'transfer', g(employer), g(contractor), amount(1n))
    expect(failure(network, more)).toBe('Error(Contract, #10)')
  })

  it("stores a contract's balance as contract data for 30 days", () => {
    apply(network, usdc(employer, 'transfer', g(employer), vault(), amount(5n)))
    const entry = network.state.get(contractBalanceKey(network.contracts.underlying, network.contracts.auditor).id)
    if (entry?.data.type !== 'contractData') throw new Error('no balance')
    expect(scValToNative(entry.data.contractData.val)).toEqual({ amount: 5n, authorized: true, clawback: false })
    expect(scValToNative(entry.data.contractData.key)).toEqual(['Balance', network.contracts.auditor])
    expect(entry.liveUntil).toBe(ledger.sequence + 518_400)
  })

  it('pays the account of a muxed recipient and puts the id into the event', () => {
    const muxed = new MuxedAccount(new Account(contractor.publicKey(), '0'), '42').accountId()
    const to = new Address(muxed).toScVal()
    const result = apply(network, usdc(employer, 'transfer', g(employer), to, amount(5n)))
    expect(eventOf(result)).toEqual({
      topics: ['transfer', employer.publicKey(), contractor.publicKey(), name],
      data: { amount: 5n, to_muxed_id: 42n },
    })
    expect(balance(g(contractor))).toBe(1_000_0000000n + 5n)
  })

  it('is a mint from the issuer and a burn to it', () => {
    const minted = apply(network, usdc(issuer, 'transfer', g(issuer), g(contractor), amount(5n)))
    expect(eventOf(minted)).toEqual({ topics: ['mint', contractor.publicKey(), name], data: 5n })
    const burnt = apply(network, usdc(contractor, 'transfer', g(contractor), g(issuer), amount(5n)))
    expect(eventOf(burnt)).toEqual({ topics: ['burn', contractor.publicKey(), name], data: 5n })
    expect(balance(g(contractor))).toBe(1_000_0000000n)
  })

  it('leaves the balance unchanged when sender and recipient are the same', () => {
    apply(network, usdc(employer, 'transfer', g(employer), g(employer), amount(5n)))
    expect(balance(g(employer))).toBe(1_000_0000000n)
  })

  it("requires a contract's authorization to move its balance", () => {
    apply(network, usdc(employer, 'transfer', g(employer), vault(), amount(5n)))
    const theft = usdc(employer, 'transfer', vault(), g(employer), amount(5n))
    expect(label(enforce(network, theft))).toBe('Error(Auth, InvalidAction)')
  })
})

describe('allowances', () => {
  const approve = (value: bigint, until: number) =>
    usdc(employer, 'approve', g(employer), g(contractor), amount(value), number(until))
  const allowance = () => read(usdc(employer, 'allowance', g(employer), g(contractor)))
  const take = (value: bigint) =>
    usdc(contractor, 'transfer_from', g(contractor), g(employer), g(contractor), amount(value))

  it('can be spent in parts', () => {
    const result = apply(network, approve(10n, ledger.sequence + 5))
    expect(eventOf(result)).toEqual({
      topics: ['approve', employer.publicKey(), contractor.publicKey(), name],
      data: [10n, ledger.sequence + 5],
    })
    apply(network, take(4n))
    expect(allowance()).toBe(6n)
    apply(network, usdc(contractor, 'burn_from', g(contractor), g(employer), amount(6n)))
    expect(allowance()).toBe(0n)
    expect(balance(g(employer))).toBe(1_000_0000000n - 10n)
    expect(balance(g(contractor))).toBe(1_000_0000000n + 4n)
  })

  it('reject more than the allowance (#9), an end in the past (#9) and negative amounts (#8)', () => {
    apply(network, approve(10n, ledger.sequence))
    expect(failure(network, take(11n))).toBe('Error(Contract, #9)')
    expect(failure(network, approve(1n, ledger.sequence - 1))).toBe('Error(Contract, #9)')
    expect(failure(network, approve(-1n, ledger.sequence))).toBe('Error(Contract, #8)')
  })

  it('end after their last ledger, even if the entry lives longer', () => {
    apply(network, approve(10n, ledger.sequence))
    const later = { ...ledger, sequence: ledger.sequence + 1 }
    expect(label(enforce(network, take(1n), { ledger: later, mode: recording }))).toBe('Error(Contract, #9)')
  })
})

describe('the administrator', () => {
  it('can mint to trustlines and contracts, and no other account can', () => {
    const result = apply(network, usdc(issuer, 'mint', g(contractor), amount(5n)))
    expect(eventOf(result)).toEqual({ topics: ['mint', contractor.publicKey(), name], data: 5n })
    apply(network, usdc(issuer, 'mint', vault(), amount(5n)))
    expect(balance(vault())).toBe(5n)
    const request = usdc(employer, 'mint', g(employer), amount(5n))
    expect(label(enforce(network, request))).toBe('Error(Auth, InvalidAction)')
  })

  it('can be replaced by another administrator', () => {
    const result = apply(network, usdc(issuer, 'set_admin', g(employer)))
    expect(eventOf(result)).toEqual({ topics: ['set_admin', issuer.publicKey(), name], data: employer.publicKey() })
    expect(read(usdc(employer, 'admin'))).toBe(employer.publicKey())
    apply(network, usdc(employer, 'mint', g(employer), amount(5n)))
    expect(label(enforce(network, usdc(issuer, 'mint', g(employer), amount(5n))))).toBe('Error(Auth, InvalidAction)')
  })

  it('can revoke an authorization only if the issuer is AUTH_REVOCABLE', () => {
    const revoke = usdc(issuer, 'set_authorized', g(contractor), xdr.ScVal.scvBool(false))
    expect(failure(network, revoke)).toBe('Error(Contract, #2)')
    putAccount(network.state, issuer.publicKey(), { flags: 2 })
    expect(eventOf(apply(network, revoke))).toEqual({
      topics: ['set_authorized', contractor.publicKey(), name],
      data: false,
    })
    expect(read(usdc(employer, 'authorized', g(contractor)))).toBe(false)
    expect(failure(network, transfer(1n))).toBe('Error(Contract, #11)')
    apply(network, usdc(issuer, 'set_authorized', g(contractor), xdr.ScVal.scvBool(true)))
    expect(failure(network, transfer(1n))).toBe('')
    const own = usdc(issuer, 'set_authorized', g(issuer), xdr.ScVal.scvBool(true))
    expect(failure(network, own)).toBe('Error(Contract, #2)')
  })

  it("can freeze a contract's balance", () => {
    apply(network, usdc(employer, 'transfer', g(employer), vault(), amount(5n)))
    putAccount(network.state, issuer.publicKey(), { flags: 2 })
    apply(network, usdc(issuer, 'set_authorized', vault(), xdr.ScVal.scvBool(false)))
    expect(failure(network, usdc(employer, 'transfer', g(employer), vault(), amount(1n)))).toBe('Error(Contract, #11)')
    expect(read(usdc(employer, 'authorized', vault()))).toBe(false)
  })
})

describe('trust', () => {
  it("creates a trustline with the issuer's flags", () => {
    putAccount(network.state, issuer.publicKey(), { flags: 1 | 8 })
    apply(network, usdc(stranger, 'trust', g(stranger)))
    const line = network.state.get(trustlineKey(stranger.publicKey(), asset).id)?.data
    const account = network.state.get(accountKey(stranger.publicKey()).id)?.data
    expect(line?.type === 'trustline' && line.trustLine).toMatchObject({ balance: 0n, limit: 2n ** 63n - 1n, flags: 4 })
    expect(account?.type === 'account' && account.account.numSubEntries).toBe(1)
  })

  it("requires the reserve (#14), a free subentry (#15) and the account's authorization", () => {
    const request = usdc(stranger, 'trust', g(stranger))
    expect(label(enforce(network, request))).toBe('Error(Auth, InvalidAction)')
    putAccount(network.state, stranger.publicKey(), { balance: 1_4999999n })
    expect(failure(network, request)).toBe('Error(Contract, #14)')
    putAccount(network.state, stranger.publicKey(), { numSubEntries: 1_000, balance: 10n ** 12n })
    expect(failure(network, request)).toBe('Error(Contract, #15)')
  })
})

it('extends its instance to a week when less than six days are left', () => {
  const key = instanceKey(network.contracts.underlying).id
  const entry = network.state.get(key)
  if (!entry) throw new Error('no instance')
  network.state.put({ ...entry, liveUntil: ledger.sequence + 103_681 })
  apply(network, transfer(1n))
  expect(network.state.get(key)?.liveUntil).toBe(ledger.sequence + 103_681)
  network.state.put({ ...entry, liveUntil: ledger.sequence + 103_680 })
  apply(network, transfer(1n))
  expect(network.state.get(key)?.liveUntil).toBe(ledger.sequence + 120_960)
})
