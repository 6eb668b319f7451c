/** What stands where a search or a filter leaves nothing. */
export function NothingFound({ search }: { search: string }) {
  return (
    <>
      <strong>Nothing found</strong>
      {search !== '' && (
        <p>
          A search finds whole addresses (G… or C…) and whole hashes: of transfers those of the payer, the payee and
          whose quota it is, and each of their hashes; of refusals the payer’s, and the inner hash.
        </p>
      )}
    </>
  )
}
