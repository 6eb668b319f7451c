import { invalidParams, type Params, wrongType } from './json-rpc.ts'

/** The format of XDR in a response: base64, or the JSON of SEP-51 in fields whose names end in Json. */
export type XdrFormat = 'base64' | 'json'

interface XdrType {
  fromXdr(text: string, encoding: 'base64'): { toJson(): unknown }
}

/** The requested format. @throws -32602 for an unknown one */
export function readFormat(params: Params): XdrFormat {
  const fault = formatFault(params)
  if (fault !== undefined) throw invalidParams(fault)
  return params.xdrFormat === 'json' ? 'json' : 'base64'
}

/** The error of an unknown format. */
export function formatFault({ xdrFormat }: Params): string | undefined {
  const format = xdrFormat ?? ''
  if (typeof format !== 'string') throw wrongType(format, 'xdrFormat', 'string')
  if (format === '' || format === 'base64' || format === 'json') return undefined
  return `got '${format.slice(0, 100)}': expected base64, json for optional 'xdrFormat'`
}

/**
 * Response fields that contain XDR, by name without the suffix: `envelopeXdr` or `envelopeJson`. The input is base64,
 * alone or in nested lists; absent fields stay absent.
 */
export function formatXdr(
  format: XdrFormat,
  fields: Readonly<Record<string, { readonly type: XdrType; readonly xdr: Base64 | undefined }>>,
): object {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, { type, xdr: value }]) => {
      if (value === undefined) return []
      return [format === 'json' ? [`${name}Json`, toJson(type, value)] : [`${name}Xdr`, value]]
    }),
  )
}

type Base64 = string | readonly Base64[]

export function toJson(type: XdrType, value: Base64): unknown {
  return typeof value === 'string' ? type.fromXdr(value, 'base64').toJson() : value.map((one) => toJson(type, one))
}
