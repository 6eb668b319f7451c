/** Decimal places of XLM and of every asset behind a Stellar asset contract. */
const DECIMALS = 7

/** Formats stroops or base units as a decimal with seven places: 12n → '0.0000012'. */
export function formatUnits(units: bigint): string {
  const digits = (units < 0n ? -units : units).toString().padStart(DECIMALS + 1, '0')
  return `${units < 0n ? '-' : ''}${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`
}

/**
 * Parses a decimal string into base units: '1.5' → 15000000n.
 * @throws RangeError if it is not a plain non-negative decimal of at most seven places
 */
export function parseUnits(decimal: string): bigint {
  const match = /^(\d{1,30})(?:\.(\d{1,7}))?$/.exec(decimal)
  if (!match) throw new RangeError('not a decimal of at most seven places')
  return BigInt(`${match[1]}${(match[2] ?? '').padEnd(DECIMALS, '0')}`)
}
