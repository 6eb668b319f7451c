import type { Ledger } from '../apply/ledger.ts'

/** How many ledgers the fee statistics cover. */
const WINDOWS = { classic: 10, soroban: 50 }
const PERCENTILES = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99]

export function getFeeStats({ history }: Ledger): object {
  const latest = history.latest().sequence
  const feesOf = (isSoroban: boolean, window: number) => {
    const sequences = Array.from({ length: window }, (_, index) => latest - index)
    const transactions = sequences.flatMap((sequence) => history.ledger(sequence)?.transactions ?? [])
    const fees = transactions.filter((one) => one.isSoroban === isSoroban).map((one) => BigInt(one.inclusionFee))
    return distribution(fees, window)
  }
  return {
    sorobanInclusionFee: feesOf(true, WINDOWS.soroban),
    inclusionFee: feesOf(false, WINDOWS.classic),
    latestLedger: latest,
  }
}

/** Percentiles by nearest rank, as in stellar-rpc; zeros without transactions. */
function distribution(unsorted: readonly bigint[], window: number): object {
  const fees = unsorted.toSorted((left, right) => (left < right ? -1 : left > right ? 1 : 0))
  const at = (place: number) => String(fees[place] ?? 0n)
  const percentiles = PERCENTILES.map((percent) => [`p${percent}`, at(Math.ceil((percent * fees.length) / 100) - 1)])
  return {
    max: at(fees.length - 1),
    min: at(0),
    mode: String(modeOf(fees)),
    ...Object.fromEntries(percentiles),
    transactionCount: String(fees.length),
    ledgerCount: fees.length > 0 ? window : 0,
  }
}

/** The most frequent value, or the lowest of several. */
function modeOf(sorted: readonly bigint[]): bigint {
  const groups = Array.from(Map.groupBy(sorted, (fee) => fee).entries())
  const most = Math.max(...groups.map(([, fees]) => fees.length))
  return groups.find(([, fees]) => fees.length === most)?.[0] ?? 0n
}
