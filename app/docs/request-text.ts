import type { ReferenceOperation } from '#lib/openapi/reference.ts'

const VARIABLES = { session: '$SESSION', metrics: '$METRICS_TOKEN', scheduler: '$CRON_SECRET' } as const

/** A request of an operation for the command line, with the values of the example. */
export function curlText({ method, path, token, parameters, body }: ReferenceOperation, baseUrl: string): string {
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    return encodeURIComponent(parameters.find((parameter) => parameter.name === name)?.example ?? name)
  })
  const required = parameters.filter((parameter) => parameter.place === 'query' && parameter.isRequired)
  const query = new URLSearchParams(required.map(({ name, example }) => [name, example ?? '']))
  const url = `${baseUrl}${place}${required.length > 0 ? `?${query}` : ''}`
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}'${url}'`,
    ...(token ? [`-H "Authorization: Bearer ${VARIABLES[token]}"`] : []),
    ...(body ? ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body.example, null, 2)}'`] : []),
  ]
  return lines.join(' \\\n  ')
}
