/** Redirects to a page after a form. The address is relative, so it works under every host name of this service. */
export function seeOther(page: string): Response {
  return new Response(null, { status: 303, headers: { Location: page } })
}

/**
 * The response to a form that wasn't posted from a page of PUBLIC_URL, for an operator who opened the page at another
 * address of the service.
 * @param publicUrl an origin, so it has no characters that are special in HTML
 */
export function foreignForm(publicUrl: string): Response {
  return answerForm(
    { status: 403, title: 'Wrong address' },
    `This dashboard is at <a href="${publicUrl}/sign-in">${publicUrl}</a>, and it accepts no forms from other addresses.
If the address that you opened is the right one, set <code>PUBLIC_URL</code> to it and restart the service.`,
  )
}

/**
 * The response to a form that changed nothing.
 * @param problem a sentence of this service, without user input
 * @param back a page of the dashboard, as accepted by `isOwnPage`
 */
export function notDone(problem: string, back: string): Response {
  const link = `<a href="${back.replaceAll('&', '&amp;')}">Back</a>`
  return answerForm({ status: 409, title: 'Nothing was changed' }, `${problem} ${link}`)
}

function answerForm({ status, title }: { status: number; title: string }, text: string): Response {
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Confidential payroll</title>
<style>
html { background: Canvas; color: CanvasText }
body { max-width: 34rem; margin: 15vh auto; padding: 0 1.5rem; font: 1rem/1.5 system-ui, sans-serif }
</style>
<main>
<h1>${title}</h1>
<p>${text}</p>
</main>
</html>
`
  return new Response(page, { status, headers: { 'Content-Type': 'text/html; charset=utf-8' } })
}

/** Whether `address` is a page of the dashboard, so that a crafted form cannot lead to another site. */
export function isOwnPage(address: string): boolean {
  return /^\/(overview|batches|payouts|transfers|contractors|organisations|jobs|audit|ledger)(\/[\w-]+)?(\?[\w=&%.*+-]*)?$/.test(
    address,
  )
}
