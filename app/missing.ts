import { notFound } from 'next/navigation'
import type { ReactNode } from 'react'
import { setPageStatus } from '#lib/turns/response.ts'

/**
 * The content of a page whose record does not exist, with status 404. `notFound()` sends no content to a browser without
 * JavaScript, so it is called only where the status cannot be set.
 */
export function missing(content: ReactNode): ReactNode {
  if (!setPageStatus(404)) notFound()
  return content
}
