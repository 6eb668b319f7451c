import { linkTo, type Page } from '#lib/http/paging.ts'
import { Answer } from './operation.ts'

/** The answer that is `body`, with a link to the next page and the number of all records where they are known. */
export function answerPage<Body>(request: Request, { next, total }: Page<unknown>, body: Body): Answer<Body> {
  const headers = new Headers()
  if (next) headers.set('Link', linkTo(request, next))
  if (total !== undefined) headers.set('X-Total-Count', String(total))
  return new Answer(body, { headers })
}
