/** Shows the document. Sends no requests to other origins: no validator, no fonts, no telemetry. */
const viewer = document.getElementById('viewer')

const dark = window.matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

window.payrollViewer = window.SwaggerUIBundle({
  url: '/api/openapi.json',
  domNode: viewer,
  // A link inside the button that unfolds an operation cannot be reached by keyboard.
  deepLinking: false,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  syntaxHighlight: { activated: false },
  tryItOutEnabled: true,
  validatorUrl: null,
})

const REGIONS = [
  ['.information-container', 'About'],
  ['.scheme-container', 'Server and authorization'],
]

/** Adds the names and heading levels that screen readers need and Swagger UI leaves out. */
function label() {
  for (const [part, name] of REGIONS) {
    const region = viewer.querySelector(part)
    region?.setAttribute('role', 'region')
    region?.setAttribute('aria-label', name)
  }
  viewer.querySelector('#servers')?.setAttribute('aria-label', 'Server')
  for (const body of viewer.querySelectorAll('.body-param__text')) body.setAttribute('aria-label', 'Body')
  for (const operation of viewer.querySelectorAll('.opblock')) {
    const path = operation.querySelector('.opblock-summary-path')?.textContent
    const tables = operation.querySelectorAll('.responses-table')
    const name = (table) => (table.classList.contains('live-responses-table') ? 'Answer' : 'Answers')
    for (const table of tables) table.setAttribute('aria-label', `${name(table)} of ${operation.id} ${path}`)
  }
  for (const heading of viewer.querySelectorAll('.opblock-tag')) heading.setAttribute('aria-level', '2')
  for (const heading of viewer.querySelectorAll('.opblock-section-header h4, .opblock-body h5, .models > h4')) {
    heading.setAttribute('role', 'heading')
    heading.setAttribute('aria-level', '3')
  }
}

new MutationObserver(label).observe(viewer, { childList: true, subtree: true })
