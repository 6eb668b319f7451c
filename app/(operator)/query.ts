import type { Route } from 'next'

/** The search query of a page, trimmed. If the parameter is repeated, the first value is used. */
export type Query = Record<string, string>

export async function readQuery(parameters: Promise<Record<string, string | string[] | undefined>>): Promise<Query> {
  const entries = Object.entries(await parameters)
  // For a name that every object inherits, such as `constructor`, Next puts what is inherited before the value.
  const textIn = (value: unknown) => [value].flat().find((one) => typeof one === 'string') ?? ''
  return Object.fromEntries(entries.map(([name, value]) => [name, textIn(value).trim()]))
}

/** The search query of a request, read like that of a page. */
export function queryOf(parameters: URLSearchParams): Query {
  return Object.fromEntries([...parameters.keys()].map((name) => [name, (parameters.get(name) ?? '').trim()]))
}

/** The address of `path` with the parameters of `query` that are not empty. */
export function addressOf(path: string, query: Query): Route {
  const filled = Object.entries(query).filter(([, value]) => value !== '')
  return (filled.length === 0 ? path : `${path}?${new URLSearchParams(filled)}`) as Route
}

/** A query without its cursor: for the first page, or for a file. */
export const firstPage = ({ after: _, before: __, ...query }: Query): Query => query
