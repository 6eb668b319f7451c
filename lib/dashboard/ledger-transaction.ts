import { Address, StrKey, xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import type { Network } from '#lib/stellar/network.ts'
import { contractErrorOf, decodeResult, resultCodeOf } from '#lib/stellar/transaction.ts'

/** A transaction as a ledger included it. Shows only address arguments: the others are the client's proof. */
export interface LedgerTransaction {
  succeeded: boolean
  ledger: number
  closedAt: Date
  /** the account whose sequence number it uses */
  source: string
  feeSource: string
  /** in stroops */
  feeCharged: bigint
  resultCode: string
  contractError: number | null
  isFeeBump: boolean
  operations: LedgerOperation[]
}

interface LedgerOperation {
  /** the XDR name of the operation */
  type: string
  /** of a contract call, with its address arguments */
  call?: { contract: string; name: string; addresses: string[] }
}

const FOUND = z.discriminatedUnion('status', [
  z.object({ status: z.literal('NOT_FOUND'), oldestLedger: z.number().int() }),
  z.object({
    status: z.enum(['SUCCESS', 'FAILED']),
    ledger: z.number().int(),
    createdAt: z.coerce.number(),
    envelopeXdr: z.string(),
    resultXdr: z.string(),
    diagnosticEventsXdr: z.array(z.string()).nullish(),
  }),
])

/**
 * Reads a transaction, or returns the oldest ledger of the RPC if the response is NOT_FOUND.
 * @throws LedgerError `unavailable`
 */
export async function readLedgerTransaction(
  network: Network,
  hash: string,
): Promise<LedgerTransaction | { oldestLedger: number }> {
  const found = await network.call('getTransaction', { hash }, FOUND)
  if (found.status === 'NOT_FOUND') return { oldestLedger: found.oldestLedger }
  const result = decodeResult(found.resultXdr)
  return {
    ...readEnvelope(xdr.TransactionEnvelope.fromXdr(found.envelopeXdr, 'base64')),
    succeeded: found.status === 'SUCCESS',
    ledger: found.ledger,
    closedAt: new Date(found.createdAt * 1000),
    feeCharged: result.feeCharged,
    resultCode: resultCodeOf(result),
    contractError: contractErrorOf(found.diagnosticEventsXdr ?? []),
  }
}

function readEnvelope(
  envelope: xdr.TransactionEnvelope,
): Pick<LedgerTransaction, 'source' | 'feeSource' | 'isFeeBump' | 'operations'> {
  if (envelope.type === 'envelopeTypeTxFeeBump') {
    const { tx } = envelope.feeBump
    const inner = readTransaction(tx.innerTx.v1.tx)
    return { ...inner, feeSource: accountOf(tx.feeSource), isFeeBump: true }
  }
  if (envelope.type === 'envelopeTypeTx') return { ...readTransaction(envelope.v1.tx), isFeeBump: false }
  const source = StrKey.encodeEd25519PublicKey(envelope.v0.tx.sourceAccountEd25519.toBytes())
  return { source, feeSource: source, isFeeBump: false, operations: envelope.v0.tx.operations.map(readOperation) }
}

function readTransaction(tx: xdr.Transaction) {
  const source = accountOf(tx.sourceAccount)
  return { source, feeSource: source, operations: tx.operations.map(readOperation) }
}

function readOperation({ body }: xdr.Operation): LedgerOperation {
  if (body.type !== 'invokeHostFunction') return { type: body.type }
  const { hostFunction } = body.invokeHostFunctionOp
  if (hostFunction.type !== 'hostFunctionTypeInvokeContract') return { type: body.type }
  const { contractAddress, functionName, args } = hostFunction.invokeContract
  return {
    type: body.type,
    call: {
      contract: Address.fromScAddress(contractAddress).toString(),
      name: functionName.toString(),
      addresses: args.flatMap((value) => (value.type === 'scvAddress' ? [Address.fromScVal(value).toString()] : [])),
    },
  }
}

/** The G-address behind an account that may be muxed (CAP-27). */
function accountOf(account: xdr.MuxedAccount): string {
  const key = account.type === 'keyTypeEd25519' ? account.ed25519 : account.med25519.ed25519
  return StrKey.encodeEd25519PublicKey(key.toBytes())
}
