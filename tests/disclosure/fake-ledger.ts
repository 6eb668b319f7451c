import { createHash } from 'node:crypto'
import { nativeToScVal, StrKey, xdr } from '@stellar/stellar-sdk'
import type { EventReference } from '#lib/disclosure/bundle.ts'
import { DisclosureError } from '#lib/disclosure/disclosure-error.ts'
import type { DisclosureSource } from '#lib/disclosure/ledger-source.ts'
import type { LedgerEvent } from '#lib/disclosure/payment.ts'
import type { ConfidentialAccount } from '#lib/wallet/account.ts'
import { commit, type Opening } from '#lib/wallet/commitment.ts'
import { encryptDelegatedTransfer } from '#lib/wallet/delegation.ts'
import { encryptTransfer } from '#lib/wallet/encryption.ts'
import { encodePoint } from '#lib/wallet/grumpkin.ts'
import { scAddress } from '#lib/wallet/invocation.ts'
import { drawSalt, type Holder } from '#lib/wallet/keys.ts'
import { auditor, holder, seeded, TOKEN } from '../wallet/fixtures.ts'

export const PASSPHRASE = 'Standalone Network ; February 2017'
export const FIRST_LEDGER = 1_000

/** A ledger in memory: registered accounts, and the events of payments that the wallet's own code encrypts. */
export class FakeLedger {
  readonly events: LedgerEvent[] = []
  readonly accounts = new Map<string, ConfidentialAccount>()
  /** the auditor's keys, each with the ledger at which it became valid */
  readonly auditorKeys = [{ from: 0, ...auditor('auditor') }]
  readonly random = seeded('ledger')

  enrol(name: string, opening: Opening = { value: 0n, blinding: 0n }): Holder {
    const account = holder(name)
    const { spendingKey, viewingKey } = account.keys
    const spendable = encodePoint(commit(opening))
    this.accounts.set(account.address, {
      auditorId: 0,
      spendingKey,
      viewingKey,
      spendable,
      receiving: new Uint8Array(64),
    })
    return account
  }

  pay(from: Holder, to: Holder, amount: bigint, closedAt = '2026-02-01T00:00:00Z'): LedgerEvent {
    const { key } = this.currentAuditor()
    const { payload } = encryptTransfer({
      keys: from.keys,
      opening: { value: amount + 5n, blinding: 3n },
      amount,
      auditorSender: key,
      auditorRecipient: key,
      viewingKey: to.keys.viewingKey,
      salt: drawSalt(this.random),
    })
    return this.emit('transfer', [from.address, to.address], payload, closedAt)
  }

  payDelegated(spender: Holder, from: Holder, to: Holder, amount: bigint, closedAt = '2026-02-01T00:00:00Z') {
    const { key } = this.currentAuditor()
    const { payload } = encryptDelegatedTransfer({
      keys: spender.keys,
      delegationKey: 77n,
      allowance: { value: amount + 9n, blinding: 4n },
      allowanceSalt: drawSalt(this.random),
      salt: drawSalt(this.random),
      amount,
      viewingKey: to.keys.viewingKey,
      auditorRecipient: key,
      auditorSender: key,
    })
    return this.emit('spender_transfer', [spender.address, from.address, to.address], payload, closedAt)
  }

  /** The next payments are encrypted to another key. */
  rotateAuditor(): void {
    this.auditorKeys.push({ from: this.nextLedger(), ...auditor(`auditor ${this.auditorKeys.length}`) })
  }

  /** Emits an event whose data has these bytes, and public amounts. */
  emit(
    name: string,
    addresses: string[],
    payload: Readonly<Record<string, Uint8Array | bigint>>,
    closedAt = '2026-02-01T00:00:00Z',
  ): LedgerEvent {
    const ledger = this.nextLedger()
    const fields = Object.entries(payload).toSorted(([one], [other]) => (one < other ? -1 : 1))
    const data = xdr.ScVal.scvMap(
      fields.map(([field, value]) => {
        const key = xdr.ScVal.scvSymbol(field)
        const val = typeof value === 'bigint' ? nativeToScVal(value, { type: 'i128' }) : xdr.ScVal.scvBytes(value)
        return new xdr.ScMapEntry({ key, val })
      }),
    )
    const event: LedgerEvent = {
      id: `${String((BigInt(ledger) << 32n) | (1n << 12n)).padStart(19, '0')}-${String(0).padStart(10, '0')}`,
      contract: TOKEN,
      ledger,
      closedAt: new Date(closedAt).toISOString(),
      transaction: createHash('sha256').update(`transaction ${ledger}`).digest('hex'),
      eventIndex: 0,
      topics: [xdr.ScVal.scvSymbol(name), ...addresses.map(scAddress)].map((topic) => topic.toXdr('base64')),
      data: data.toXdr('base64'),
      source: 'the RPC',
    }
    this.events.push(event)
    return event
  }

  source(): DisclosureSource {
    return {
      readPassphrase: async () => PASSPHRASE,
      readLatestLedger: async () => ({ ledger: this.nextLedger() - 1, closedAt: '2026-07-01T00:00:00.000Z' }),
      readAccounts: async (names) => new Map([...this.accounts].filter(([name]) => names.includes(name))),
      findEvent: async ({ transaction, eventIndex }: EventReference) => {
        const found = this.events.find((each) => each.transaction === transaction && each.eventIndex === eventIndex)
        if (found) return found
        throw new DisclosureError('event-not-found', 'there is no such event')
      },
      readTransaction: async (hash) => this.events.filter(({ transaction }) => transaction === hash),
      findAuditorKeys: async (_, events) =>
        events.map(({ ledger }) => {
          const key = this.auditorKeys.findLast(({ from }) => from <= ledger)?.key
          if (key) return key
          throw new DisclosureError('auditor-key-unknown', 'the auditor had no key')
        }),
    }
  }

  private currentAuditor() {
    return this.auditorKeys.at(-1) ?? auditor('auditor')
  }

  private nextLedger(): number {
    return FIRST_LEDGER + this.events.length
  }
}

export const OTHER_TOKEN = StrKey.encodeContract(new Uint8Array(32).fill(8))
