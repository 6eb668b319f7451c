import { createHash } from 'node:crypto'
import { type Keypair, xdr } from '@stellar/stellar-sdk'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'
import { type AccountAuth, authOf } from '#lib/stellar/account.ts'
import { accountEntry, signerKey } from '../support/fake-rpc.ts'
import {
  envelopeOf,
  pair,
  payer,
  signTransaction,
  sponsor,
  stranger,
  transactionHash,
  transferTransaction,
} from '../support/inner-transaction.ts'

/** A signed transfer, its account, and the expected verdict on its signatures: the reason of the refusal, or nothing. */
type SignatureCase = [name: string, envelope: string, account: AccountAuth, reason?: RefusalReason]

const [bob, carol] = [pair('bob'), pair('carol')]
const tx = transferTransaction()
const digest = transactionHash(tx)
const signed = (...signers: Keypair[]) => signTransaction(tx, signers)
const elsewhere = (...signers: Keypair[]) => signTransaction(tx, signers, 'Test SDF Network ; September 2015')
const account = (given?: Parameters<typeof accountEntry>[1]) =>
  authOf(payer.publicKey(), accountEntry(payer.publicKey(), given))
const signer = (key: Keypair, weight: number) => ({ key: signerKey(key), weight })
/** An account with these thresholds (of the master key, LOW, MEDIUM, HIGH), and one other signer. */
const withBob = (thresholds: [number, number, number, number], weight: number) =>
  account({ thresholds, signers: [signer(bob, weight)] })
const own = account()
const twoOfThree = account({ thresholds: [1, 1, 2, 3], signers: [signer(bob, 1), signer(carol, 1)] })
const none: AccountAuth = { exists: false }

const decorated = (key: Keypair, change: (signature: Buffer) => Uint8Array = (signature) => signature, hint = key) =>
  new xdr.DecoratedSignature({ hint: hint.signatureHint(), signature: change(Buffer.from(key.sign(digest))) })
const decoratedBy = (...signatures: xdr.DecoratedSignature[]) => envelopeOf(tx, signatures)
const garbage = new xdr.DecoratedSignature({ hint: payer.signatureHint(), signature: new Uint8Array(64).fill(1) })
const nineteen = Array.from({ length: 19 }, () => garbage)
const ofAnother = payer.signDecorated(transactionHash(transferTransaction({ tx: { seqNum: 9n } })))
const preimage = new Uint8Array(32).fill(7)
const hashX = createHash('sha256').update(preimage).digest()
const ofHash = new xdr.DecoratedSignature({ hint: hashX.subarray(28), signature: preimage })
const byHash = account({ signers: [{ key: xdr.SignerKey.signerKeyTypeHashX(hashX), weight: 9 }] })
const others = Array.from({ length: 19 }, (_, index) => pair(`signer ${index}`))
const ofTwenty = account({ thresholds: [1, 20, 20, 20], signers: others.map((key) => signer(key, 1)) })

/** S + L: the same signature in a second form. */
function malleated(signature: Buffer): Uint8Array {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order
  const second = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse()
  return Buffer.concat([signature.subarray(0, 32), second])
}

export const SIGNATURE_CASES: readonly SignatureCase[] = [
  ['the master key alone', signed(payer), own],
  ['nobody', signed(), own, 'too-little-weight'],
  ['a stranger', signed(stranger), own, 'bad-signature'],
  ['the sponsor', signed(sponsor), own, 'bad-signature'],
  ['on another network', elsewhere(payer), own, 'bad-signature'],
  ['garbage with the right hint', decoratedBy(garbage), own, 'bad-signature'],
  [
    'the right signature with the hint of another',
    decoratedBy(decorated(payer, undefined, bob)),
    account({ signers: [signer(bob, 1)] }),
    'bad-signature',
  ],
  ['a signature of another transaction', decoratedBy(ofAnother), own, 'bad-signature'],
  ['a signature a byte short', decoratedBy(decorated(payer, (one) => one.subarray(0, 63))), own, 'bad-signature'],
  ['no bytes for a signature', decoratedBy(decorated(payer, () => new Uint8Array(0))), own, 'bad-signature'],
  ['the second form of the signature', decoratedBy(decorated(payer, malleated)), own, 'bad-signature'],
  ['the same signature twice', signed(payer, payer), own, 'extra-signature'],
  ['a stranger beside the master key', signed(payer, stranger), own, 'bad-signature'],
  ['20 signatures: one valid, the others garbage', decoratedBy(decorated(payer), ...nineteen), own, 'bad-signature'],
  ['20 signatures: garbage, the last one valid', decoratedBy(...nineteen, decorated(payer)), own, 'bad-signature'],
  ['20 signatures of 20 signers', signed(...others, payer), ofTwenty],
  ['two of three', signed(bob, carol), twoOfThree],
  ['two of three, the master key among them', signed(carol, payer), twoOfThree],
  ['one of three', signed(bob), twoOfThree, 'too-little-weight'],
  ['one of three twice', signed(bob, bob), twoOfThree, 'too-little-weight'],
  ['two of three, one of them twice', signed(bob, bob, carol), twoOfThree, 'extra-signature'],
  ['two of three, one of them elsewhere', elsewhere(bob, carol), twoOfThree, 'bad-signature'],
  ['a weight one short of MEDIUM', signed(bob), withBob([1, 0, 200, 255], 199), 'too-little-weight'],
  ['a weight of exactly MEDIUM, below HIGH', signed(bob), withBob([1, 0, 200, 255], 200)],
  ['MEDIUM below LOW, and the weight between them', signed(bob), withBob([1, 200, 5, 255], 5), 'too-little-weight'],
  ['MEDIUM below LOW, which is reached', signed(bob), withBob([1, 200, 5, 255], 200)],
  ['two where one would do', signed(payer, bob), account({ signers: [signer(bob, 1)] }), 'extra-signature'],
  ['three where two would do', signed(bob, carol, payer), twoOfThree, 'extra-signature'],
  ['a light one before the one that suffices', signed(payer, bob), withBob([1, 0, 5, 5], 5)],
  ['a master key without weight beside one that has it', signed(payer, bob), withBob([0, 0, 0, 0], 1), 'bad-signature'],
  ['another signer, the master key without weight', signed(bob), withBob([0, 0, 0, 0], 1)],
  ['a signer of weight 0, all thresholds 0', signed(bob), withBob([1, 0, 0, 0], 0), 'bad-signature'],
  ['nobody, all thresholds 0', signed(), withBob([0, 0, 0, 0], 1), 'too-little-weight'],
  ['a signer where all thresholds are 0', signed(bob), withBob([1, 0, 0, 0], 1)],
  ['the preimage of a hash', decoratedBy(ofHash), byHash, 'bad-signature'],
  ['no account, a stranger', signed(stranger), none, 'no-account'],
  ['no account, nobody', signed(), none, 'no-account'],
]

/** The sequence number that the account has used last, beside that of a transfer with number 8. */
export const PAYER_CASES: readonly { name: string; used: bigint | null; reason?: RefusalReason }[] = [
  { name: 'the next number', used: 7n },
  { name: 'a number that is used', used: 8n, reason: 'sequence' },
  { name: 'a number long used', used: 100n, reason: 'sequence' },
  { name: 'a number too far ahead', used: 6n, reason: 'sequence' },
  { name: 'no account', used: null, reason: 'no-account' },
]
