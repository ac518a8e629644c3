{{- define "image" -}}
{{- $root := index . 0 -}}
{{- $registry := required "image.registry is empty. Name the registry and path of your images: --set image.registry=registry.example.com/queue" $root.Values.image.registry -}}
{{ $registry }}/{{ index . 1 }}
{{- with index . 2 }}@{{ . }}{{ else }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "validationActions" -}}
{{ eq .Values.tenancy.mode "enforce" | ternary "[Deny]" "[Warn, Audit]" }}
{{- end }}
