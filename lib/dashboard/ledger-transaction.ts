import { Address, type xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import type { Network } from '#lib/stellar/network.ts'
import { decodeEnvelope } from '#lib/stellar/node/envelope.ts'
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
  const response = await network.call('getTransaction', { hash }, FOUND)
  if (response.status === 'NOT_FOUND') return { oldestLedger: response.oldestLedger }
  const result = decodeResult(response.resultXdr)
  return {
    ...readEnvelope(response.envelopeXdr, network.passphrase),
    succeeded: response.status === 'SUCCESS',
    ledger: response.ledger,
    closedAt: new Date(response.createdAt * 1000),
    feeCharged: result.feeCharged,
    resultCode: resultCodeOf(result),
    contractError: contractErrorOf(response.diagnosticEventsXdr ?? []),
  }
}

function readEnvelope(
  encoded: string,
  passphrase: string,
): Pick<LedgerTransaction, 'source' | 'feeSource' | 'isFeeBump' | 'operations'> {
  const { envelope, source, feeBump } = decodeEnvelope(encoded, passphrase)
  return {
    source,
    feeSource: feeBump?.feeSource ?? source,
    isFeeBump: feeBump !== undefined,
    operations: envelope.tx.operations.map(readOperation),
  }
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
