/**
 * The names of the operator's cookies. Over https, the prefix binds them to this exact host. Without https that prefix
 * isn't allowed. The name then includes the port, since cookies are shared by all services on a host.
 */
export function operatorCookies(publicUrl: string): { session: string; browser: string; secure: boolean } {
  const { protocol, port } = new URL(publicUrl)
  const secure = protocol === 'https:'
  const name = (role: string) => (secure ? `__Host-${role}` : `${role}-${port || '80'}`)
  return { session: name('operator'), browser: name('operator-browser'), secure }
}
