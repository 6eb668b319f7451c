const shared = globalThis as { payroll?: Map<string, unknown> }
shared.payroll ??= new Map()
const values = shared.payroll

/** The value of this name, made once in a process: a build bundles startup and routes separately, each with its own modules. */
export function perProcess<Value>(name: string, make: () => Value): Value {
  if (!values.has(name)) values.set(name, make())
  return values.get(name) as Value
}
