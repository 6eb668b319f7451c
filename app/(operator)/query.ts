import type { Route } from 'next'

/** The query of a page; of a repeated parameter the first counts. */
export type Query = Record<string, string>

export async function readQuery(given: Promise<Record<string, string | string[] | undefined>>): Promise<Query> {
  const entries = Object.entries(await given)
  return Object.fromEntries(entries.map(([name, value]) => [name, (Array.isArray(value) ? value[0] : value) ?? '']))
}

/** The address of `path` with what of `query` is not empty. */
export function addressOf(path: string, query: Query): Route {
  const filled = Object.entries(query).filter(([, value]) => value !== '')
  return (filled.length === 0 ? path : `${path}?${new URLSearchParams(filled)}`) as Route
}

/** The number of the page that a query asks for: the first, unless it is a whole number. */
export function pageNumber({ page = '' }: Query): number {
  return /^[1-9]\d{0,6}$/.test(page) ? Number(page) : 1
}
