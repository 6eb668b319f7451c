/** Whether `address` is a page of the dashboard, so that a crafted form cannot lead to another site. */
export function isOwnPage(address: string): boolean {
  return /^\/(overview|batches|payouts|transfers|contractors|organisations|jobs|audit|ledger)(\/[\w-]+)?(\?[\w=&%.*+-]*)?$/.test(
    address,
  )
}
